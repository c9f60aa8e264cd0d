"""Every filter in every mode: nothing that is shown breaks one; and one thing has one place."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test.utils import override_settings

from search.serializers import to_request
from search.services import answer
from search.types import ROW_TYPES, Filters, Row, ScanResult, SearchResult
from tests.postgres import TestIndex, edge, row

MODES: dict[str, dict[str, Any]] = {
    **{f"scan {sort}": {"sort": sort} for sort in ("relevance", "updated_desc", "created_desc")},
    **{
        f"{fusion} {sort} rerank={rerank}": {
            "query": "anchor",
            "fusion": fusion,
            "sort": sort,
            "rerank": rerank,
        }
        for fusion in ("rrf", "dense_only", "sparse_only")
        for sort in ("relevance", "updated_desc", "created_desc")
        for rerank in (True, False)
    },
}
SINCE = "2026-01-03T00:00:00Z"
UNTIL = "2026-01-06T00:00:00Z"
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "repo": {"repo": "acme/app"},
    **{f"type {type_}": {"type": type_} for type_ in ROW_TYPES},
    "type all": {"type": "all"},
    "state": {"state": "closed"},
    "state all": {"state": "all"},
    "one label": {"labels": ["bug"]},
    "two labels": {"labels": ["bug", "search"]},
    "milestone": {"milestone": "v1"},
    "assignee": {"assignee": "ann"},
    "since": {"since": SINCE},
    "until": {"until": UNTIL},
    "window": {"since": SINCE, "until": UNTIL},
    "all at once": {
        "repo": "acme/app", "type": "diff", "state": "open", "labels": ["search"],
        "milestone": "v1", "assignee": "ann", "since": SINCE, "until": UNTIL,
    },
}  # fmt: skip

# What a row must be, written out once more: not taken from the code that is tested.
OBEYS: dict[str, Callable[[Row, Any], bool]] = {
    "repo": lambda row, value: row.repo == value,
    "type": lambda row, value: row.type == value,
    "state": lambda row, value: row.state == value,
    "labels": lambda row, value: all(label in row.labels for label in value),
    "milestone": lambda row, value: row.milestone == value,
    "assignee": lambda row, value: value in row.assignees,
    "since": lambda row, value: row.updated_at is not None and row.updated_at >= value,
    "until": lambda row, value: row.updated_at is not None and row.updated_at < value,
}


def rows() -> list[dict[str, Any]]:
    """Rows of all types with every mixture of the filtered fields, several to a thing."""
    return [
        row(
            f"{type_}:{n:02}",
            type=type_,
            repo="acme/app" if n % 2 else "acme/web",
            state="closed" if n % 3 == 0 else "open",
            labels=[label for bit, label in enumerate(("bug", "search")) if n >> bit & 1],
            milestone="v1" if n % 5 else "",
            assignees=["ann", "bob"] if n % 4 else ["bob"],
            updated_at=f"2026-01-0{n % 7 + 1}T00:00:00Z" if n % 11 else None,
            created_at=f"2025-01-0{n % 5 + 1}T00:00:00Z" if n % 6 else None,
            number=n % 4 + 1 if type_ not in {"doc", "wiki_doc", "diff", "release"} else 0,
            doc_path=f"{n % 5}.md" if type_ in {"doc", "wiki_doc"} else "",
            file_path=f"{n % 5}.md" if type_ == "diff" else "",
            commit_sha=f"{n:07}" if type_ == "diff" else "",
            # Half of the rows are found; the others can only be neighbours.
            content="anchor " * (n % 3 + 1) if n < 30 else "other",
            embedding=[1.0, n / 100] if n < 30 else None,
        )
        for type_ in ROW_TYPES
        for n in range(60)
    ]


@pytest.fixture(scope="module")
def loaded(make_index: Callable[[], TestIndex]) -> TestIndex:
    """The rows of this module, each mentioned by some others."""
    index = make_index()
    world = rows()
    ids = [one["vector_id"] for one in world]
    steps = (1, 31, 97, 220)
    index.load(
        world, [edge(one, ids[(n + s) % len(ids)]) for n, one in enumerate(ids) for s in steps]
    )
    return index


@pytest.fixture
def index(loaded: TestIndex, use_index: Callable[[TestIndex], TestIndex]) -> Iterator[TestIndex]:
    with override_settings(
        SEARCH_EMBEDDER="tests.embedders.FirstAxis", SEARCH_RERANKER="tests.rerankers.Shortest"
    ):
        yield use_index(loaded)


def shown_rows(result: SearchResult | ScanResult) -> list[Row]:
    """Every row that an answer shows or refers to."""
    if isinstance(result, ScanResult):
        return [one.row for one in result.rows]
    folded = [other.row for one in result.shown for other in one.others]
    return [*(one.row for one in result.shown), *folded]


@pytest.mark.parametrize("mode", MODES)
def test_no_row_that_is_shown_breaks_a_filter(index: TestIndex, mode: str) -> None:
    everything = {"top_k": 50, "graph_expand": True, "graph_hops": 2, "include_content": True}
    scan_window = {} if "query" in MODES[mode] else {"since": "2000-01-01T00:00:00Z"}
    for filters, values in FILTERS.items():
        request = to_request({**scan_window, **everything, **MODES[mode], **values})
        result = answer(request=request)
        assert result.degraded == (), filters
        seen = shown_rows(result)
        assert seen, f"{filters}: the filter leaves rows, or nothing is shown here"
        for name in Filters.__slots__:
            value = getattr(request.filters, name)
            if value not in {None, ()}:
                assert all(OBEYS[name](one, value) for one in seen), filters
        ids = [one.vector_id for one in seen]
        assert len(set(ids)) == len(ids), f"{filters}: a row twice"
        if isinstance(result, SearchResult):
            keys = [one.entity_key for one in result.shown]
            assert len(set(keys)) == len(keys), f"{filters}: an entity twice"
            assert len(result.hits) <= 50
            assert result.rerank_applied is ("relevance rerank=True" in mode)


def test_neighbours_and_folded_rows_are_among_what_was_checked(index: TestIndex) -> None:
    for filters in ("none", "repo", "two labels", "window"):
        data = {"query": "anchor", "top_k": 5, "graph_expand": True, "graph_hops": 2}
        result = answer(request=to_request({**data, **FILTERS[filters]}))
        assert isinstance(result, SearchResult)
        assert result.neighbours
        assert any(hit.others for hit in result.hits)


def test_a_search_is_reranked_unless_it_says_no(index: TestIndex) -> None:
    data = {"query": "anchor", "type": "wiki_doc", "top_k": 30}
    asked = answer(request=to_request(data))
    assert isinstance(asked, SearchResult)
    assert (asked.rerank_requested, asked.rerank_applied) == (True, True)
    lengths = [len((hit.row.content or "").strip()) for hit in asked.hits]
    assert lengths == sorted(lengths)
    assert all(hit.ranked.rerank_score is not None for hit in asked.hits)
    plain = answer(request=to_request({**data, "rerank": False}))
    assert isinstance(plain, SearchResult)
    assert (plain.rerank_requested, plain.rerank_applied) == (False, False)
    assert [hit.ranked.rerank_score for hit in plain.hits] == [None] * 30
    assert {hit.entity_key for hit in plain.hits} == {hit.entity_key for hit in asked.hits}
    scores = [hit.ranked.score for hit in plain.hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("rerank", [True, False])
def test_a_file_found_as_document_and_as_diff_has_one_place(
    make_index: Callable[[], TestIndex],
    use_index: Callable[[TestIndex], TestIndex],
    index: TestIndex,
    rerank: bool,
) -> None:
    """By dense as `doc`, by text as `diff`, and once more as a neighbour of another result."""
    mine = use_index(make_index())
    path = "rules/limit.md"
    mine.load(
        [
            row("d:1", type="doc", doc_path=path, content="about rounds", embedding=[1.0]),
            row(
                "c:1", type="diff", file_path=path, commit_sha="7fd9d5e", content="the limit limit"
            ),
            row("c:2", type="diff", file_path=path, commit_sha="322d820", content="unrelated"),
            row("w:1", type="wiki_doc", doc_path="Limits", content="a longer page on the limit"),
            row("c:9", type="diff", file_path="b.md", commit_sha="7fd9d5e", content="unrelated"),
        ],
        [edge("w:1", "d:1"), edge("w:1", "c:2"), edge("w:1", "c:9")],
    )
    result = answer(
        request=to_request(
            {"query": "limit", "rerank": rerank, "graph_expand": True, "graph_hops": 2}
        )
    )
    assert isinstance(result, SearchResult)
    assert result.rerank_applied is rerank
    assert [one.entity_key for one in result.shown].count(f"file:acme/app:{path}") == 1
    [file] = [hit for hit in result.hits if hit.entity_key == f"file:acme/app:{path}"]
    rows = {file.ranked.vector_id, *(other.row.vector_id for other in file.others)}
    assert rows == {"d:1", "c:1", "c:2"}
    assert [one.row.vector_id for one in result.neighbours] == ["c:9"]
