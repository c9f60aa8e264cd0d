"""Scan mode: the rows of a window of time, newest first, neither ranked nor collapsed.

The window is `since` ≤ `updated_at` < `until` in every order, as the filters of a search are, so
the order never changes which rows there are. Where it is left out, `since` is seven days before
`until`, or before now. A row without `updated_at` is therefore in no window; one without
`created_at` comes last where rows are ordered by it.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.backends.utils import CursorWrapper

from search import content, filters, keyset, rows, unmatched
from search.keyset import Place
from search.presentation import scanned
from search.reading import bounded_snapshot
from search.run import timed
from search.types import Degradation, Filters, Row, ScanResult, SearchRequest

DEFAULT_WINDOW: Final = timedelta(days=7)

# Order → its column. Relevance means nothing without a query: such a request is ordered as one
# that names no order.
_COLUMNS: Final[Mapping[str, str]] = {
    "relevance": "updated_at",
    "updated_desc": "updated_at",
    "created_desc": "created_at",
}
_SORTS: Final[Mapping[str, str]] = {"updated_at": "updated_desc", "created_at": "created_desc"}

# Returns the ids of the rows of a window after a place, in the order of the walk.
_ROWS: Final = "SELECT vector_id FROM search_docs WHERE {where} ORDER BY {order} LIMIT %(limit)s"


def scan(*, request: SearchRequest) -> ScanResult:
    """Return up to `top_k` rows of the window, those after `page` where it is given.

    A walk by `next_page` returns each row of the window that it began with once, also where times
    are equal. Raises InvalidRequest naming `page`, IndexUnavailable when the index cannot be read.
    """
    timings_ms: dict[str, float] = {}
    degraded: list[Degradation] = []
    column = _COLUMNS[request.sort]
    walk = f"search.scan:{column}:{request.filters!r}"
    window, place = _start(request, walk)
    with timed(timings_ms, "scan"), bounded_snapshot() as cursor:
        found = _read(cursor, column, window, place, limit=request.top_k + 1)
        lost = () if found or place else unmatched.explain(cursor, request.filters)
    shown = tuple(scanned(row) for row in found[: request.top_k])
    if request.include_content:
        with timed(timings_ms, "content"):
            texts = content.read(
                (one.row for one in shown),
                lambda stage, reason: degraded.append(Degradation(stage, reason)),
            )
        shown = content.attach(shown, texts)
    since = window.since or datetime.min.replace(tzinfo=UTC)
    truncated = len(found) > request.top_k
    return ScanResult(
        request=request,
        rows=shown,
        sort=_SORTS[column],
        since=since,
        until=window.until,
        truncated=truncated,
        next_page=_next_page(walk, shown[-1].row, column, since) if truncated else None,
        timings_ms=timings_ms,
        degraded=tuple(degraded),
        filters_unmatched=lost,
    )


def _start(request: SearchRequest, walk: str) -> tuple[Filters, Place | None]:
    """Return the window and the place to go on after; a page goes on in the window it is from."""
    if request.page is None:
        return replace(request.filters, since=_since(request.filters)), None
    place, (since,) = keyset.from_token(walk, request.page, field="page")
    return replace(request.filters, since=datetime.fromisoformat(since)), place


def _since(asked: Filters) -> datetime:
    if asked.since is not None:
        return asked.since
    try:
        return (asked.until or datetime.now(UTC)) - DEFAULT_WINDOW
    except OverflowError:  # `until` lies in the first week that there is
        return datetime.min.replace(tzinfo=UTC)


def _read(
    cursor: CursorWrapper, column: str, window: Filters, place: Place | None, *, limit: int
) -> list[Row]:
    # Only the column that the window is not about can be null in it.
    after = keyset.after(column, place, undated=column != "updated_at")
    cursor.execute(
        _ROWS.format(where=filters.where(window, *after), order=keyset.order(column)),
        {**filters.active(window), **keyset.values(place), "limit": limit},
    )
    ids = [vector_id for (vector_id,) in cursor.fetchall()]
    found = rows.fetch(ids, with_content=ids)
    return [found[vector_id] for vector_id in ids]


def _next_page(walk: str, last: Row, column: str, since: datetime) -> str:
    return keyset.to_token(walk, Place(getattr(last, column), last.vector_id), since.isoformat())
