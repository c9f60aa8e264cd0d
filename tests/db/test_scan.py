"""Scan mode: which rows a window holds, in which order, and how one walks back through it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from search.errors import IndexUnavailable, InvalidRequest
from search.services import answer
from search.types import Filters, ScanResult, SearchRequest
from tests.postgres import TestIndex, row

START = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = ("bug", "search")


def scan(**options: Any) -> ScanResult:
    filters = {name: options.pop(name) for name in list(options) if name in Filters.__slots__}
    result = answer(request=SearchRequest(" ", filters=Filters(**filters), **options))
    assert isinstance(result, ScanResult)
    return result


def ids(result: ScanResult) -> list[str]:
    return [one.row.vector_id for one in result.rows]


def hour(n: int) -> datetime:
    return START + timedelta(hours=n)


def at(name: str, updated: datetime | None, **fields: Any) -> dict[str, Any]:
    return row(name, updated_at=updated.isoformat() if updated else None, **fields)


def tiles(*, top_ks: Iterator[int], **options: Any) -> Iterator[ScanResult]:
    """Walk back from the first tile to the last."""
    page = None
    while True:
        result = scan(top_k=next(top_ks), page=page, **options)
        yield result
        page = result.next_page
        if page is None:
            return


def world() -> list[dict[str, Any]]:
    """300 rows at few distinct times, some without one or both."""
    return [
        at(
            f"i:{n * 7919 % 300:03}",
            hour(n % 11) if n % 6 else None,
            created_at=hour(-(n % 5)).isoformat() if n % 4 else None,
            number=n + 1,
            repo=f"acme/{'app' if n % 3 else 'web'}",
            labels=[label for bit, label in enumerate(LABELS) if n >> bit & 1],
        )
        for n in range(300)
    ]


def oracle(rows: list[dict[str, Any]], column: str, filters: dict[str, Any]) -> list[str]:
    """Ids of the rows of a window, newest first, null last, ties by id: by looking at each row."""
    kept = [
        one
        for one in rows
        if one["updated_at"] is not None
        and filters["since"] <= one["updated_at"]
        and (filters["until"] is None or one["updated_at"] < filters["until"])
        and filters["repo"] in (None, one["repo"])
        and set(filters["labels"]) <= set(one["labels"])
    ]
    never = datetime.min.replace(tzinfo=UTC)
    kept.sort(key=lambda one: one["vector_id"])
    kept.sort(key=lambda one: one[column] or never, reverse=True)
    return [one["vector_id"] for one in kept]


def test_walking_tiles_returns_every_row_of_the_window_once_and_in_order(index: TestIndex) -> None:
    rows = world()
    index.load(rows)

    @settings(max_examples=80, deadline=None)
    @given(
        sort=st.sampled_from(["updated_desc", "created_desc", "relevance"]),
        since=st.integers(-1, 10).map(hour),
        until=st.one_of(st.none(), st.integers(11, 13).map(hour)),
        repo=st.sampled_from([None, "acme/app", "acme/web"]),
        labels=st.sets(st.sampled_from(LABELS)).map(tuple),
        sizes=st.lists(st.integers(1, 50), min_size=40, max_size=40),
    )
    def check(sort: str, sizes: list[int], **filters: Any) -> None:
        column = "created_at" if sort == "created_desc" else "updated_at"
        expected = oracle(rows, column, filters)
        walked: list[str] = []
        # After forty tiles of random sizes come large ones: a walk of ones would take long.
        sizes_then_large = iter([*sizes, *[50] * 7])
        for tile in tiles(top_ks=sizes_then_large, sort=sort, **filters):
            walked += ids(tile)
            assert tile.truncated is (len(walked) < len(expected))
        assert walked == expected

    check()


def test_the_window_is_half_open_and_seven_days_long_by_default(index: TestIndex) -> None:
    week = 7 * 24
    index.load([at(f"i:{n}", hour(n)) for n in (-1, 0, 1, week - 1, week, week + 1)])
    result = scan(until=hour(week))
    assert ids(result) == [f"i:{week - 1}", "i:1", "i:0"]
    assert (result.since, result.until) == (hour(0), hour(week))
    assert ids(scan(since=hour(1), until=hour(week))) == [f"i:{week - 1}", "i:1"]


def test_without_until_the_window_ends_now_and_a_walk_keeps_its_start(
    index: TestIndex, time_machine: Any
) -> None:
    index.load([at(f"i:{n}", hour(n)) for n in range(5)])
    time_machine.move_to(hour(7 * 24), tick=False)
    first = scan(top_k=3)
    assert (ids(first), first.since, first.until) == (["i:4", "i:3", "i:2"], hour(0), None)
    time_machine.move_to(hour(7 * 24 + 4), tick=False)
    assert ids(scan()) == ["i:4"]
    rest = scan(top_k=3, page=first.next_page)
    assert (ids(rest), rest.since) == (["i:1", "i:0"], hour(0))


def test_a_row_without_a_time_fills_no_window(index: TestIndex) -> None:
    index.load(
        [
            *[at(f"i:null{n}", None, created_at=hour(9).isoformat()) for n in range(20)],
            at("i:undated", hour(3)),
            at("i:old", hour(1), created_at=hour(0).isoformat()),
            at("i:new", hour(0), created_at=hour(2).isoformat()),
        ]
    )
    window = {"since": datetime.min.replace(tzinfo=UTC), "until": hour(10)}
    assert ids(scan(**window, top_k=3)) == ["i:undated", "i:old", "i:new"]
    by_creation = scan(**window, top_k=3, sort="created_desc")
    assert ids(by_creation) == ["i:new", "i:old", "i:undated"]
    assert not by_creation.truncated


@pytest.mark.parametrize("rows", [0, 9, 10, 11])
def test_truncated_is_said_only_if_more_rows_exist(index: TestIndex, rows: int) -> None:
    index.load([at(f"i:{n:02}", hour(0)) for n in range(rows)] + [at("i:older", hour(-200))])
    result = scan(until=hour(1), top_k=10)
    assert len(result.rows) == min(rows, 10)
    assert result.truncated is (rows > 10)
    assert (result.next_page is not None) is (rows > 10)


def test_a_walk_survives_writes(index: TestIndex) -> None:
    index.load([at(f"i:{n}", hour(n)) for n in (1, 2, 3, 4)])
    first = scan(since=hour(0), top_k=2)
    index.load([at("i:new", hour(9)), at("i:same", hour(3))], deleted=["i:3"])
    assert ids(scan(since=hour(0), top_k=9, page=first.next_page)) == ["i:same", "i:2", "i:1"]


def test_rows_are_not_collapsed(index: TestIndex) -> None:
    index.load([at(f"c:{n}", hour(n), type="diff", file_path="a.py") for n in range(3)])
    result = scan(since=hour(0))
    assert {one.entity_key for one in result.rows} == {"file:acme/app:a.py"}
    assert len(result.rows) == 3


def test_a_page_of_another_scan_or_altered_is_refused(index: TestIndex) -> None:
    index.load([at(f"i:{n}", hour(n)) for n in range(5)])
    page = scan(since=hour(0), top_k=1).next_page
    assert page is not None
    payload, _, signature = page.partition(":")
    wrong: list[dict[str, Any]] = [
        {"since": hour(1), "page": page},
        {"since": hour(0), "page": page, "repo": "acme/app"},
        {"since": hour(0), "page": page, "sort": "created_desc"},
        *[{"since": hour(0), "page": text} for text in ("x", "", "é", f"{page}x", page[:-1])],
        {"since": hour(0), "page": f"{payload[:-2]}AA:{signature}"},
        {"since": hour(0), "page": payload},
    ]
    for options in wrong:
        with pytest.raises(InvalidRequest) as caught:
            scan(**options)
        assert caught.value.field == "page"
    assert ids(scan(since=hour(0), page=page, top_k=2, sort="relevance")) == ["i:3", "i:2"]


def test_the_parameters_of_ranking_change_nothing(index: TestIndex) -> None:
    index.load([at("i:1", hour(0))])
    plain = scan(since=hour(0))
    with CaptureQueriesContext(connections["index"]) as queries:
        result = scan(
            since=hour(0), fusion="dense_only", rerank=False, graph_expand=True, graph_hops=2
        )
    assert result.rows == plain.rows
    assert result.degraded == ()
    assert not any("doc_edges" in query["sql"] for query in queries)


def test_a_filter_that_matches_no_row_is_named(index: TestIndex) -> None:
    index.load([at("i:1", hour(0))])
    [lost] = scan(repo="app", since=hour(0)).filters_unmatched
    assert (lost.filter, lost.value, lost.suggestions) == ("repo", "app", ("acme/app",))
    assert scan(repo="acme/app", until=hour(-9)).filters_unmatched == ()


def test_an_empty_index_is_no_empty_window(index: TestIndex) -> None:
    with pytest.raises(IndexUnavailable):
        scan()


@pytest.mark.parametrize("until", [datetime.min, datetime.min + timedelta(days=3)])
def test_the_first_week_that_there_is(index: TestIndex, until: datetime) -> None:
    index.load([at("i:1", hour(0))])
    assert ids(scan(until=until.replace(tzinfo=UTC))) == []


def test_a_window_is_found_by_an_index_however_far_back_it_lies(index: TestIndex) -> None:
    index.load([at(f"i:{n}", hour(n)) for n in range(3_000)])
    index.execute("ANALYZE search_docs")
    first = scan(until=hour(100), since=hour(0), top_k=5)
    with CaptureQueriesContext(connections["index"]) as queries:
        scan(until=hour(100), since=hour(0), top_k=5, page=first.next_page)
    [statement] = [q["sql"] for q in queries if "ORDER BY updated_at" in q["sql"]]
    [(plan,)] = index.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
    node = plan[0]["Plan"]
    while "Plans" in node:
        [node] = node["Plans"]
    assert node["Index Name"] == "search_docs_updated"
    # The planner may walk the index from the place or fetch the window and sort it: either way no
    # row outside the window is read.
    assert node["Actual Rows"] + node.get("Rows Removed by Filter", 0) <= 100
