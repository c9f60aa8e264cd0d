"""A second run does what is new, whatever moves while it reads."""

from collections.abc import Callable

import pytest

from indexer.errors import IndexerError
from tests.fakes.github_api import GitHubApi, Received, Reply
from tests.indexer_git.embedders import Failing
from tests.indexer_github.conftest import NAME, Indexed, Rows, difference

Scratch = Callable[[], Rows]


def fill(api: GitHubApi, items: int = 12, *, gap: int = 1) -> None:
    for number in range(items):
        api.tick(gap)
        one = api.issue(f"Title {number}", pull=number % 2 == 1)
        api.comment(one, f"A comment on {number}")
        if number % 2:
            api.review(one, f"A review of {number}")
            api.inline_comment(one, f"A remark on {number}")
    api.release("v1")


def test_nothing_new_costs_a_few_requests_and_writes_nothing(
    indexed: Indexed, api: GitHubApi
) -> None:
    fill(api)
    indexed.run()
    indexed.run()  # begins where the first ended, so its first pages are others
    rows, stamps = indexed.rows(), indexed.index.execute("SELECT max(indexed_at) FROM search_docs")
    written = indexed.index.execute("SELECT written_at FROM index_info")
    indexed.backend.texts.clear()
    api.requests.clear()
    report = indexed.run()
    assert indexed.rows() == rows
    assert indexed.index.execute("SELECT max(indexed_at) FROM search_docs") == stamps
    assert indexed.index.execute("SELECT written_at FROM index_info") == written
    assert indexed.backend.texts == []
    assert report.probe is None
    # All but the repository itself, and pages after the first: an ETag speaks for one page.
    listings = [path for path in api.paths() if path and not path.endswith("/reviews")]
    further = len(listings) - len(set(listings))
    assert report.unchanged == len(api.requests) - 1 - further


def test_reviews_are_asked_for_where_a_pull_request_changed(
    indexed: Indexed, api: GitHubApi
) -> None:
    fill(api)
    indexed.run()
    api.tick(3600)
    api.review(4, "A late review of 3")
    api.tick(3600)
    api.edit(2, title="Changed")
    api.requests.clear()
    indexed.run()
    asked = [path for path in api.paths() if path.endswith("/reviews")]
    assert "/pulls/4/reviews" in asked
    assert "/pulls/2/reviews" in asked
    # The last ones before share the minute that is read again.
    assert "eve\n\nA late review of 3" in indexed.contents("pr_review")
    api.requests.clear()
    indexed.run()
    assert [path for path in api.paths() if path.endswith("/reviews")] == ["/pulls/2/reviews"]


def test_what_is_edited_is_changed_and_what_becomes_short_goes(
    indexed: Indexed, api: GitHubApi
) -> None:
    issue = api.issue("Title")
    comment = api.comment(issue)
    indexed.run()
    api.comments[comment] |= {"body": "short", "updated_at": api.tick()}
    api.edit(issue, title="New title", state="closed", labels=[{"name": "bug"}])
    report = indexed.run()
    assert [row[2:5] for row in indexed.rows()] == [("issue", "closed", ["bug"])]
    assert (report.tally.updated, report.tally.deleted) == (1, 1)


def test_unchanged_content_is_not_embedded_again(indexed: Indexed, api: GitHubApi) -> None:
    issue = api.issue("Title", "Body")
    indexed.run()
    api.edit(issue, state="closed")
    report = indexed.run()
    assert indexed.backend.texts == ["Title\n\nBody"]
    assert (report.embedded, report.reused) == (0, 1)


def test_items_that_move_on_while_they_are_read_are_not_missed(
    indexed: Indexed, api: GitHubApi, scratch: Scratch
) -> None:
    """After each page, an item of it is edited: the rest of the listing moves up by one."""
    fill(api, 14)
    edits = iter(range(1, 15))

    def edit_one(received: Received) -> None:
        if received.path.endswith("/issues") and (number := next(edits, None)):
            api.edit(number, title=f"Moved {number}")
        if received.path.endswith("/comments") and (key := min(api.comments, default=None)):
            api.comments[key]["updated_at"] = api.tick()

    api.before = edit_one
    indexed.run()
    api.before = lambda received: None
    assert len(indexed.contents("issue")) == 7
    assert len(indexed.contents("pull_request")) == 7
    assert len(indexed.contents("issue_comment")) == 14
    indexed.run()
    assert difference(indexed.rows(), scratch()) == []


def test_more_items_of_one_time_than_a_page_holds(
    indexed: Indexed, api: GitHubApi, scratch: Scratch
) -> None:
    """Page numbers are all there is; one that leaves meanwhile costs another pass."""
    for number in range(17):
        api.issue(f"Title {number}", updated_at="2024-01-01T12:00:00Z")
    api.tick(100_000)
    leaving = iter([2, 4, 5])

    def leave(received: Received) -> None:
        if received.query.get("page", "1") != "1" and (number := next(leaving, None)):
            api.edit(number, title=f"Left {number}")

    api.before = leave
    indexed.run()
    assert len(indexed.contents("issue")) == 17
    assert difference(indexed.rows(), scratch()) == []
    api.before = lambda received: None
    api.issue("after them")
    indexed.run()
    assert difference(indexed.rows(), scratch()) == []


def test_a_release_that_is_gone_is_deleted_and_one_that_moved_is_not(
    indexed: Indexed, api: GitHubApi
) -> None:
    for number in range(12):
        api.release(f"v{number}")
    indexed.run()
    del api.releases[3]
    deletions = iter([api.releases[0]])

    def delete_one(received: Received) -> None:
        if received.query.get("page") == "2" and (one := next(deletions, None)):
            api.releases.remove(one)

    api.before = delete_one
    indexed.run()
    tags = {row[10] for row in indexed.rows()}
    assert tags == {f"v{number}" for number in range(12)} - {"v8", "v11"}


def test_a_single_page_of_releases_is_known_by_its_etag(indexed: Indexed, api: GitHubApi) -> None:
    api.release("v1")
    api.release("v2")
    indexed.run()
    assert indexed.run().unchanged >= 1
    del api.releases[0]
    indexed.run()
    assert [row[10] for row in indexed.rows()] == ["v1"]


def test_a_full_run_removes_what_is_gone_and_sees_what_no_time_tells(
    indexed: Indexed, api: GitHubApi, scratch: Scratch
) -> None:
    fill(api)
    api.tick(4_000)
    api.comment(api.issue())
    indexed.run()
    api.delete_issue(2)
    api.delete_issue(3)
    api.comments.pop(min(api.comments))
    api.issues[5]["labels"] = [{"name": "renamed"}]  # renaming a label touches no issue
    indexed.run()
    assert len(difference(indexed.rows(), scratch())) == 9
    report = indexed.run(full=True)
    assert difference(indexed.rows(), scratch()) == []
    assert (report.tally.deleted, report.tally.updated) == (7, 1)
    assert indexed.index.execute("SELECT FROM indexer_state WHERE key LIKE 'github-seen%'") == []


def test_a_full_run_leaves_other_rows_alone(indexed: Indexed, api: GitHubApi) -> None:
    from tests.postgres import row

    issue = api.issue()
    indexed.run()
    others = [row("i:other", repo="acme/other"), row("d:doc", repo=NAME, type="doc")]
    indexed.index.load(others)
    api.delete_issue(issue)
    indexed.run(full=True)
    assert {one[0] for one in indexed.rows()} == {"i:other", "d:doc"}


def test_an_issue_that_was_transferred_here_brings_its_comments(
    indexed: Indexed, api: GitHubApi
) -> None:
    """They keep their times, which lie before the cursor."""
    api.tick(10_000)
    api.comment(api.issue("here"), "Said here, and late")
    indexed.run()
    old = "2024-01-01T00:00:30Z"
    there = api.issue("from elsewhere", created_at=old)
    api.comment(there, "Said elsewhere, long ago", created_at=old, updated_at=old)
    api.issues[there]["updated_at"] = api.tick()
    indexed.run()
    assert "bob\n\nSaid elsewhere, long ago" in indexed.contents("issue_comment")


def test_an_issue_that_was_transferred_away_goes_with_a_full_run(
    indexed: Indexed, api: GitHubApi
) -> None:
    number = api.issue("to elsewhere")
    api.comment(number)
    indexed.run()
    elsewhere = Reply(301, None, {"Location": f"{api.url}/repos/acme/else/issues/1"})
    api.delete_issue(number)
    api.replies[f"/repos/{NAME}/issues/{number}"] = elsewhere
    indexed.run()
    assert len(indexed.rows()) == 2
    indexed.run(full=True)
    assert indexed.rows() == []


@pytest.mark.parametrize("page_size", [5, 100])
def test_a_cursor_does_not_pass_what_was_not_stored(
    indexed: Indexed, api: GitHubApi, scratch: Scratch, page_size: int
) -> None:
    """The backend fails between pages, and between the batches of one page."""
    api.page_size = page_size
    fill(api, 50, gap=100)
    for left in (0, 3, 7, 20, 40, 60):
        Failing.left = left
        with pytest.raises(IndexerError, match="refused the connection"):
            indexed.run(backend=Failing())
    indexed.run()
    assert difference(indexed.rows(), scratch()) == []


def test_a_time_in_the_future_does_not_hide_the_present(
    indexed: Indexed, api: GitHubApi, scratch: Scratch
) -> None:
    api.issue("from the future", updated_at="2999-01-01T00:00:00Z")
    indexed.run()
    api.tick(86_400 * 365 * 10)  # the fake's clock is behind; the cursor stands at the server's
    api.issue("now")
    indexed.run()
    assert difference(indexed.rows(), scratch()) == []


def test_rows_without_vectors_get_them_when_they_are_read_again(
    indexed: Indexed, api: GitHubApi, scratch: Scratch
) -> None:
    api.issue()
    indexed.run(embed=False)
    assert indexed.rows()[0][-1] is None
    indexed.run(full=True)
    assert difference(indexed.rows(), scratch()) == []
