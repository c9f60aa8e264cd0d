"""Reading listings that change while they are read.

A listing in the order of the last change is read by time, not by page number: the next request asks
for what changed since the last item of the page. An item that changes meanwhile only moves on to a
later page; with page numbers, the items behind it would move up by one, and one of them, from the
page to come to the page that was read, would never be seen.

Where a whole page has one time, page numbers are all there is. Then, as for listings in another
order, a pass is repeated until two in a row hold the same items: one that a pass missed had moved
up because another had left, and the next pass holds the difference.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import ge
from typing import Any, Final

from indexer.errors import IndexerError
from indexer.github_client import Answer
from indexer.github_rows import moment

_MOST_PASSES: Final = 20


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it came. `changed` are the times of the items that have one, `now` the server's."""

    items: list[Any]
    changed: list[datetime]
    last: datetime | None
    more: bool
    now: datetime
    etag: str = ""
    last_page: int = 0
    unchanged: bool = False


def page_of(answer: Answer, what: str, size: int) -> Page:
    """Return the page of an answer; raises IndexerError where it holds no list.

    A page of `size` items counts as one that others follow: its ETag would not tell of them.
    """
    if not isinstance(answer.body, list):
        raise IndexerError(f"GitHub did not answer with a list of {what}.")
    items = answer.body
    found = [moment(item.get("updated_at")) for item in items if isinstance(item, dict)]
    changed = [time for time in found if time]
    more = bool(items) and (answer.has_next or len(items) >= size)
    last = max(changed, default=None)
    return Page(items, changed, last, more, answer.date, answer.etag, answer.last_page)


# Asks for a page of what changed since a time, by its number.
Fetch = Callable[[datetime | None, int], Page]


def by_time(fetch: Fetch, since: datetime | None) -> Iterator[tuple[Page, datetime | None]]:
    """Yield the pages of a listing from `since` on, oldest change first.

    With each comes the time up to which everything was yielded, None where that did not move.
    Raises IndexerError where the listing cannot be read so.
    """
    while True:
        page = fetch(since, 1)
        if not page.more:
            yield page, _reached(page)
            return
        if page.last is None:
            raise IndexerError("GitHub gave a page of items without times.")
        if since is None or page.last > since:
            yield page, _reached(page)
            since = page.last
            continue
        for _, page in stable(partial(fetch, since), partial(ge, since)):
            yield page, None
        later = min((time for time in page.changed if time > since), default=None)
        if later is None:
            return
        since = later


def stable(
    fetch: Callable[[int], Page], belongs: Callable[[datetime], bool] = lambda time: True
) -> Iterator[tuple[int, Page]]:
    """Yield pages with their numbers, in passes, until two passes in a row hold the same items.

    A pass ends with the listing, or with the first page that holds an item whose time does not
    belong; such items do not count. Raises IndexerError where the passes go on differing.
    """
    before: set[str] | None = None
    for _ in range(_MOST_PASSES):
        held: set[str] = set()
        last: set[str] = set()
        number = 1
        while True:
            page = fetch(number)
            names = {_identity(item) for item in page.items if _counts(item, belongs)}
            if names and names == last:
                raise IndexerError("GitHub gave the same page again under another number.")
            held, last = held | names, names
            yield number, page
            if not page.more or not all(map(belongs, page.changed)):
                break
            number += 1
        if held == before or number == 1:
            return
        before = held
    raise IndexerError("A listing kept changing while it was read; run the command again.")


def _counts(item: Any, belongs: Callable[[datetime], bool]) -> bool:
    time = moment(item.get("updated_at")) if isinstance(item, dict) else None
    return time is None or belongs(time)


def _identity(item: Any) -> str:
    return str(item.get("id", item)) if isinstance(item, dict) else str(item)


def _reached(page: Page) -> datetime | None:
    """Return the time of the last item, the server's where it lies in the future.

    A cursor in the future would hide what changes until then.
    """
    return min(page.last, page.now) if page.last else None


def iso(time: datetime) -> str:
    """Return a time in the form of the API's parameters."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
