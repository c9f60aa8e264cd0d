"""Fusion, windows, deepening and collapse against the slow oracle."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from search.deepening import Pool, gather, sorted_by_time
from search.entities import collapse, key_of
from search.types import MAX_TOP_K, Candidate
from tests.oracle import WorldRow, fetcher, slow_search

RANKERS = ("dense", "sparse", "title")
TYPES = (
    "doc",
    "diff",
    "issue",
    "issue_comment",
    "pull_request",
    "pr_review",
    "wiki_doc",
    "release",
)

# Few scores and few entities, so that ties and folds are the rule.
SCORES = st.one_of(st.none(), st.integers(0, 4).map(float))


@st.composite
def worlds(draw: st.DrawFn, max_rows: int = 60) -> list[WorldRow]:
    size = draw(st.integers(0, max_rows))
    rows = []
    for number in range(size):
        candidate = Candidate(
            vector_id=f"v{draw(st.integers(0, 9))}{number:03}",
            score=0.0,
            repo=draw(st.sampled_from(["a/x", "A/x"])),
            type=draw(st.sampled_from(TYPES)),
            number=draw(st.integers(0, 3)),
            doc_path=draw(st.sampled_from(["", "d", "d:e"])),
            file_path=draw(st.sampled_from(["", "d", "d:e"])),
        )
        rows.append(WorldRow(candidate, {name: draw(SCORES) for name in RANKERS}))
    return rows


def pool_of(world: Sequence[WorldRow], *, top_k: int, window: int) -> Pool:
    fetchers = {name: fetcher(world, name) for name in ("sparse", "title", "dense")}
    return gather(fetchers, window=window, enough=top_k, max_windows=1_000)


def answer(world: Sequence[WorldRow], *, top_k: int, window: int) -> list[tuple[str, list[str]]]:
    entities = collapse(pool_of(world, top_k=top_k, window=window).rows)[:top_k]
    return [
        (e.key, [e.representative.vector_id, *(o.vector_id for o in e.others)]) for e in entities
    ]


@given(worlds(), st.integers(1, 50), st.integers(1, 20))
@settings(max_examples=400, deadline=None)
def test_it_equals_the_oracle(world: list[WorldRow], top_k: int, window: int) -> None:
    expected = slow_search(world, RANKERS, top_k=top_k, window=window)
    assert answer(world, top_k=top_k, window=window) == expected


@given(worlds(), st.integers(1, 10))
@settings(max_examples=100, deadline=None)
def test_a_smaller_top_k_is_the_head_of_a_larger_one(world: list[WorldRow], window: int) -> None:
    largest = answer(world, top_k=MAX_TOP_K, window=window)
    for top_k in range(1, MAX_TOP_K + 1):
        assert answer(world, top_k=top_k, window=window) == largest[:top_k]


@given(worlds(), st.integers(1, 50), st.integers(1, 10))
@settings(max_examples=200, deadline=None)
def test_it_returns_top_k_entities_whenever_they_exist(
    world: list[WorldRow], top_k: int, window: int
) -> None:
    reachable = [row for row in world if any(s is not None for s in row.scores.values())]
    keys = {key for key, _ in slow_search(reachable, RANKERS, top_k=10_000, window=10_000)}
    assert len(answer(world, top_k=top_k, window=window)) == min(top_k, len(keys))


@given(worlds(), st.integers(1, 50), st.integers(1, 10))
@settings(max_examples=200, deadline=None)
def test_no_row_is_lost_or_doubled(world: list[WorldRow], top_k: int, window: int) -> None:
    pool = pool_of(world, top_k=top_k, window=window)
    placed = [row.vector_id for row in pool.rows]
    folded = [row.vector_id for e in collapse(pool.rows) for row in (e.representative, *e.others)]
    assert len(set(placed)) == len(placed)
    assert sorted(folded) == sorted(placed)


@given(worlds(), st.integers(1, 10))
@settings(max_examples=100, deadline=None)
def test_insertion_order_does_not_matter(world: list[WorldRow], window: int) -> None:
    assert answer(world, top_k=10, window=window) == answer(world[::-1], top_k=10, window=window)


def test_ranks_count_on_and_scores_fall_from_window_to_window() -> None:
    world = [
        WorldRow(Candidate(f"v{n:02}", 0.0, "a/x", "release", 0, "", ""), {"dense": 100.0 - n})
        for n in range(7)
    ]
    pool = pool_of(world, top_k=7, window=3)
    assert [row.ranks["dense"] for row in pool.rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [row.window for row in pool.rows] == [0, 0, 0, 1, 1, 1, 2]
    assert [row.score for row in pool.rows] == [1 / (60 + rank) for rank in range(1, 8)]
    assert pool.exhausted


def test_a_limit_of_windows_leaves_the_pool_unexhausted() -> None:
    world = [
        WorldRow(Candidate(f"v{n:02}", 0.0, "a/x", "release", 0, "", ""), {"dense": 1.0})
        for n in range(50)
    ]
    pool = gather({"dense": fetcher(world, "dense")}, window=5, enough=50, max_windows=2)
    assert (len(pool.rows), pool.windows, pool.exhausted) == (10, 2, False)


def test_one_thread_that_fills_every_window_costs_one_more() -> None:
    """500 comments of one issue rank first; the 12 others come with the second window."""
    thread = [
        WorldRow(
            Candidate(f"c{n:03}", 0.0, "a/x", "issue_comment", 7, "", ""), {"dense": 2.0 - n / 1000}
        )
        for n in range(500)
    ]
    rest = [
        WorldRow(Candidate(f"r{n:03}", 0.0, "a/x", "release", 0, "", ""), {"dense": 1.0 - n / 100})
        for n in range(12)
    ]
    pool = pool_of(thread + rest, top_k=10, window=100)
    assert pool.windows == 2
    assert len({key_of(row) for row in pool.rows}) == 13


def test_time_sort_puts_null_times_last_and_keeps_ties() -> None:
    from datetime import UTC, datetime

    from search.types import RankedRow

    def dated(vector_id: str, day: int | None) -> RankedRow:
        moment = datetime(2026, 1, day, tzinfo=UTC) if day else None
        candidate = Candidate(vector_id, 0.0, "a/x", "release", 0, "", "", None, moment)
        return RankedRow(candidate, 0.0, {}, {})

    rows = [dated("a", None), dated("b", 1), dated("c", 3), dated("d", 3), dated("e", None)]
    assert [row.vector_id for row in sorted_by_time(rows, "updated_at")] == [
        "c",
        "d",
        "b",
        "a",
        "e",
    ]
