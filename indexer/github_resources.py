"""Reading each kind of item of a GitHub repository, a page a transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from indexer import github_rows
from indexer.errors import BadRecord, IndexerError
from indexer.github_client import Answer, GitHub, Refused
from indexer.github_pages import Page, by_time, iso, page_of, stable
from indexer.github_report import GitHubReport
from indexer.github_rows import Item, Maker, moment
from indexer.github_state import FirstPage, State
from indexer.github_store import RowStore

# Told what is being read, how far of how much, and the rows stored so far.
OnProgress = Callable[[str, int, int, int], None]


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing in the order of the last change: its address, and the rows that it gives."""

    name: str
    what: str
    path: str
    maker: Maker
    types: tuple[str, ...]
    parameters: Mapping[str, str]


_BY_TIME: Final = {"sort": "updated", "direction": "asc"}
ISSUES: Final = Listing(
    "issues",
    "issues and pull requests",
    "/issues",
    github_rows.issue,
    ("issue", "pull_request"),
    {"state": "all", **_BY_TIME},
)
ISSUE_COMMENTS: Final = Listing(
    "issue_comments",
    "issue comments",
    "/issues/comments",
    github_rows.issue_comment,
    ("issue_comment",),
    _BY_TIME,
)
INLINE_COMMENTS: Final = Listing(
    "inline_comments",
    "inline comments",
    "/pulls/comments",
    github_rows.inline_comment,
    ("pr_review_comment",),
    _BY_TIME,
)
# The rows of each resource that a full pass can find gone; releases are compared in every run.
SWEPT: Final = {
    **{listing.name: listing.types for listing in (ISSUES, ISSUE_COMMENTS, INLINE_COMMENTS)},
    "reviews": ("pr_review",),
}


class Reader:
    """Reads the repository at `path` (/repos/owner/name); its rows get the name `repo`."""

    def __init__(
        self,
        github: GitHub,
        path: str,
        repo: str,
        state: State,
        rows: RowStore,
        report: GitHubReport,
        on_progress: OnProgress,
    ) -> None:
        self.repo = repo
        self.state = state
        self.rows = rows
        self.report = report
        self.now = datetime.now(UTC)
        self._github = github
        self._path = path
        self._on_progress = on_progress
        self._asked: set[str] = set()

    def issues(self) -> None:
        """Read issues and pull requests; where issues are switched off, pull requests alone."""
        known = self.state.cursor(ISSUE_COMMENTS.name)
        try:
            self._read(ISSUES, before=lambda page: self._note_arrivals(page, known))
        except Refused as error:
            self.note_refusal(ISSUES.what, error)
            self.try_to(self._pull_requests, "pull requests")

    def issue_comments(self) -> None:
        """Read comments of issues and pull requests; also those that came with their issue.

        An issue that was transferred brings its comments with their old times: `since` misses them.
        """
        self._read(ISSUE_COMMENTS)
        for number in self.state.arrived:
            self.try_to(partial(self._comments_of, number), f"comments of #{number}")
            self.state.settle(number)
            self.rows.put([], self.state.notes())

    def inline_comments(self) -> None:
        """Read the review comments on lines."""
        self._read(INLINE_COMMENTS)

    def releases(self) -> None:
        """Read all releases: they have no time to ask by. One that is listed no more is deleted."""
        listed: set[str] = set()
        page = None
        for number, page in stable(partial(self._page_of_releases, "/releases")):
            if number == 1:  # the last pass is what counts
                listed = set()
            items = self.made(github_rows.release, page.items)
            listed |= {item.vector_id for item in items}
            self.rows.put(items, self.state.notes())
            self.progress("releases", len(listed), len(listed))
        if page is None or page.unchanged:
            return
        if page.etag and len(page.items) == len(listed):  # there is one page
            known = FirstPage(page.etag, "", more=False)
            self.state.know_first_page("releases", "/releases", known)
        gone = self.rows.ids("release") - listed
        self.rows.put([], self.state.notes(), deleted=gone)

    def try_to(self, read: Callable[[], None], what: str) -> bool:
        """Read something; where GitHub refuses it, note that and go on. Return whether it came."""
        try:
            read()
        except Refused as error:
            self.note_refusal(what, error)
            return False
        return True

    def note_refusal(self, what: str, error: Refused) -> None:
        self.report.notes.add(f"GitHub answered {error.status}, not read", what)

    def made(self, maker: Maker, found: list[Any]) -> list[Item]:
        """Return the items that can be made of what was found; the others are noted."""
        items = []
        for data in found:
            try:
                if not isinstance(data, Mapping):
                    raise BadRecord("it is no object")
                items.append(maker(self.repo, data, self.report.notes))
            except BadRecord as error:
                self.report.notes.add(f"not stored: {error}", github_rows.name_of(data))
        self.report.items += len(found)
        return items

    def get(self, path: str, number: int, etag: str = "", **parameters: str) -> Answer:
        """Ask for a page of a listing of the repository; raises as `GitHub.get`."""
        paging = {"per_page": self._github.page_size, **({"page": number} if number > 1 else {})}
        answer = self._github.get(self._path + path, {**parameters, **paging}, etag=etag)
        if answer.unchanged and not etag:
            raise IndexerError("GitHub answered 304 to a request without an ETag.")
        self.report.unchanged += answer.unchanged
        self.now = answer.date
        return answer

    def page(self, answer: Answer, what: str) -> Page:
        """Return the page of an answer; raises IndexerError where it holds no list."""
        return page_of(answer, what, self._github.page_size)

    def progress(self, what: str, position: int, total: int) -> None:
        tally = self.report.tally
        self._on_progress(what, position, max(position, total), tally.inserted + tally.updated)

    def _read(self, listing: Listing, before: Callable[[Page], None] = lambda page: None) -> None:
        done = 0
        for page, reached in by_time(partial(self._page, listing), self.state.start(listing.name)):
            before(page)
            items = self.made(listing.maker, page.items)
            self.state.move(listing.name, reached)
            seen = [item.vector_id for item in items if item.record]
            self.rows.put(items, self.state.notes(listing.name, seen))
            total = done + max(page.last_page * self._github.page_size, len(page.items))
            done += len(page.items)
            self.progress(listing.what, done, total)
        self.state.complete(listing.name)

    def _page(self, listing: Listing, since: datetime | None, number: int) -> Page:
        """Ask for a page; the first time of this run with the ETag of the last."""
        parameters = dict(listing.parameters)
        if since:
            parameters["since"] = iso(since)
        first = listing.name not in self._asked
        self._asked.add(listing.name)
        url = f"{listing.path}?{sorted(parameters.items())}"
        known = self.state.first_page(listing.name, url) if first else None
        answer = self.get(listing.path, number, known.etag if known else "", **parameters)
        if known and answer.unchanged:
            return Page([], [], moment(known.last), known.more, answer.date, unchanged=True)
        page = self.page(answer, listing.what)
        # Of a page after which page numbers count, the next run must see the items.
        by_number = page.more and not (page.last and (since is None or page.last > since))
        if first and page.etag and not by_number:
            last = page.last.isoformat() if page.last else ""
            self.state.know_first_page(listing.name, url, FirstPage(page.etag, last, page.more))
        return page

    def _page_of_releases(self, path: str, number: int) -> Page:
        known = None
        if number == 1 and path not in self._asked:
            known = self.state.first_page("releases", path)
        self._asked.add(path)
        answer = self.get(path, number, known.etag if known else "")
        if answer.unchanged:
            return Page([], [], None, more=False, now=answer.date, unchanged=True)
        return self.page(answer, "releases")

    def _note_arrivals(self, page: Page, known: datetime | None) -> None:
        """Remember issues that are new here and older than the comments that are known."""
        numbers = {}
        for data in page.items if known else ():
            created = moment(data.get("created_at")) if isinstance(data, dict) else None
            if known and created and created < known and data.get("comments"):
                number = data.get("number")
                if isinstance(number, int):
                    numbers[github_rows.issue_id(self.repo, number)] = number
        stored = self.rows.stored(list(numbers))
        self.state.arrive([number for key, number in numbers.items() if key not in stored])

    def _comments_of(self, number: int) -> None:
        for _, page in stable(lambda n: self._numbered(f"/issues/{number}/comments", n)):
            items = self.made(github_rows.issue_comment, page.items)
            seen = [item.vector_id for item in items if item.record]
            self.rows.put(items, self.state.notes(ISSUE_COMMENTS.name, seen))

    def _numbered(self, path: str, number: int) -> Page:
        return self.page(self.get(path, number), path)

    def _pull_requests(self) -> None:
        """Read pull requests from their own listing, newest change first: it knows no `since`."""
        start, number, newest = self.state.start("pulls"), 1, None
        order = {"state": "all", "sort": "updated", "direction": "desc"}
        while True:
            page = self.page(self.get("/pulls", number, **order), "pull requests")
            self.rows.put(self.made(github_rows.issue, page.items), self.state.notes())
            self.progress("pull requests", number, page.last_page)
            newest = newest or page.last
            oldest = min(page.changed, default=None)
            if not page.more or (start and oldest and oldest < start):
                break
            number += 1
        # One that changed meanwhile is first now, and newer than this.
        self.state.move("pulls", newest and min(newest, self.now))
        self.rows.put([], self.state.notes())
