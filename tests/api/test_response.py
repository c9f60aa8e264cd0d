"""How a result is written, field by field."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from search.serializers import SearchResponse
from search.serializers.row import TYPE_FIELDS
from search.types import (
    ROW_TYPES,
    Candidate,
    Degradation,
    Filters,
    FoldedRow,
    Hit,
    Neighbour,
    PlacedRow,
    RankedRow,
    Row,
    SearchRequest,
    SearchResult,
    Snippet,
    StageTrace,
    UnmatchedFilter,
)

TIME = datetime(2026, 1, 31, 9, 30, 0, 250_000, tzinfo=UTC)


def row(type_: str, **fields: Any) -> Row:
    """Return a row with a value in every field."""
    values: dict[str, Any] = {
        "vector_id": "x:1",
        "repo": "o/r",
        "type": type_,
        "state": "open",
        "labels": ("a", "b"),
        "milestone": "m",
        "assignees": ("who",),
        "created_at": TIME,
        "updated_at": TIME,
        "number": 7,
        "tag_name": "v1",
        "doc_path": "docs/a.md",
        "wiki_extension": "md",
        "commit_sha": "601aa38",
        "file_path": "a.py",
        "file_status": "modified",
        "commit_date": TIME,
        "commit_author": "w",
        "author": "au",
        "comment_id": 2**40,
        "review_id": 3,
        "line": 12,
        "title": "t",
    }
    return Row(**{**values, **fields})


def ranked(**fields: Any) -> RankedRow:
    """Return a row that only the dense ranker held."""
    candidate = Candidate("x:1", 0.83, "o/r", "diff", 7, "", "a.py")
    return RankedRow(candidate, 1 / 61, {"dense": 1}, {"dense": 0.83}, **fields)


def unranked() -> RankedRow:
    """Return a row that no ranker held."""
    return RankedRow(Candidate("x:1", 0.0, "o/r", "wiki_doc", 0, "", ""), 0.0, {}, {})


def hit(type_: str, others: tuple[FoldedRow, ...] = (), **fields: Any) -> Hit:
    """Return a result of a type."""
    return Hit(
        "key", ranked(), row(type_, **fields), "T", "https://x/y", Snippet("abc", ((0, 1),)), others
    )


def written(*hits: Hit, **fields: Any) -> dict[str, Any]:
    """Return the answer that holds `hits`."""
    place = PlacedRow(ranked(), "key")
    trace = StageTrace(
        candidates={"dense": 3, "sparse": 2, "title": 1},
        pool=(place,) * 12,
        pool_entities=5,
        slot_entities=4,
        windows=1,
        engines={"sparse": "bm25"},
        timings_ms={"dense": 1.5},
    )
    request = fields.pop("request", SearchRequest("q", Filters(since=TIME), top_k=10))
    return dict(SearchResponse(SearchResult(request, hits, trace, **fields)).data)


def test_the_response_has_the_fields_of_the_reference_and_ours() -> None:
    assert written() == {
        "count": 0,
        "mode": "search",
        "fusion": "rrf",
        "sort": "relevance",
        "dense_candidates": 3,
        "sparse_candidates": 2,
        "filters_unmatched": [],
        "rerank_requested": True,
        "rerank_applied": False,
        "since": "2026-01-31T09:30:00.250000Z",
        "until": None,
        "graph_expanded": False,
        "graph_neighbors": 0,
        "pool": {"rows": 12, "entities": 5},
        "slots": {"rows": 10, "entities": 4},
        "complete": True,
        "degraded": [],
        "engines": {"sparse": "bm25"},
        "timings_ms": {"dense": 1.5},
        "results": [],
    }


def test_neighbours_follow_the_results_and_say_where_they_come_from() -> None:
    source = row("wiki_doc", doc_path="Home")
    neighbours = [
        Neighbour("row:1", unranked(), row("wiki_doc"), "T", "u", Snippet(""), 1, source),
        Neighbour(
            "row:2", unranked(), row("issue"), "T", "u", Snippet(""), 2, row("issue", doc_path="")
        ),
    ]
    request = SearchRequest("q", graph_expand=True)
    answer = written(hit("wiki_doc"), request=request, neighbours=tuple(neighbours))
    assert (answer["count"], answer["graph_expanded"], answer["graph_neighbors"]) == (3, True, 2)
    first, near, far = answer["results"]
    assert not {"graph_hop", "graph_from"}.intersection(first)
    assert (near["graph_hop"], near["graph_from"]) == (1, "Home")
    assert (far["graph_hop"], far["graph_from"]) == (2, "x:1")
    of_rankers = [name for name in near if name.endswith(("_score", "_rank"))]
    assert near["score"] == 0
    assert {near[name] for name in of_rankers} == {None}


@pytest.mark.parametrize(("content", "source"), [("text", "github"), ("", "index")])
def test_content_is_written_only_where_it_was_read(content: str, source: str) -> None:
    [without] = written(hit("doc"))["results"]
    assert not {"content", "content_source"}.intersection(without)
    [result] = written(replace(hit("doc"), content=content, content_source=source))["results"]
    assert (result["content"], result["content_source"]) == (content, source)


def test_what_went_wrong_is_said() -> None:
    answer = written(
        complete=False,
        incomplete_reason="limit",
        degraded=(Degradation("dense", "no model"),),
        filters_unmatched=(UnmatchedFilter("repo", "app", ("o/app",)),),
    )
    assert answer["complete"] is False
    assert answer["incomplete_reason"] == "limit"
    assert answer["degraded"] == [{"stage": "dense", "reason": "no model"}]
    assert answer["filters_unmatched"] == [
        {"filter": "repo", "value": "app", "suggestions": ["o/app"]}
    ]


def test_an_issue_has_the_common_fields() -> None:
    [result] = written(hit("issue"))["results"]
    assert result == {
        "number": 7,
        "title": "T",
        "state": "open",
        "type": "issue",
        "labels": ["a", "b"],
        "milestone": "m",
        "assignees": ["who"],
        "score": 1 / 61,
        "dense_score": 0.83,
        "sparse_score": None,
        "title_score": None,
        "dense_rank": 1,
        "sparse_rank": None,
        "title_rank": None,
        "rerank_score": None,
        "url": "https://x/y",
        "updated_at": "2026-01-31T09:30:00.250000Z",
        "repo": "o/r",
        "entity_key": "key",
        "snippet": {"text": "abc", "marks": [[0, 1]]},
    }


@pytest.mark.parametrize("type_", ROW_TYPES)
def test_a_result_has_the_fields_of_its_type_only(type_: str) -> None:
    [issue] = written(hit("issue"))["results"]
    [result] = written(hit(type_))["results"]
    assert tuple(name for name in result if name not in issue) == tuple(
        name for name in result if name in TYPE_FIELDS[type_]
    )
    assert set(result) - set(issue) == set(TYPE_FIELDS[type_])


def test_a_wiki_page_has_its_slug_as_path_and_no_empty_extension() -> None:
    [result] = written(hit("wiki_doc", doc_path="Home", wiki_extension=""))["results"]
    assert result["wiki_path"] == "Home"
    assert "wiki_extension" not in result


def test_a_time_that_is_not_known_is_null() -> None:
    [result] = written(hit("diff", updated_at=None, commit_date=None))["results"]
    assert result["updated_at"] is None
    assert result["commit_date"] is None


def test_folded_rows_are_counted_with_the_result_and_linked() -> None:
    others = (
        FoldedRow(ranked(), row("diff"), "T", "https://x/1"),
        FoldedRow(ranked(), row("doc", updated_at=None), "T", "https://x/2"),
    )
    [result] = written(hit("diff", others))["results"]
    assert result["same_entity"] == {
        "count": 3,
        "others": [
            {
                "type": "diff",
                "url": "https://x/1",
                "commit_sha": "601aa38",
                "updated_at": "2026-01-31T09:30:00.250000Z",
                "score": 1 / 61,
            },
            {"type": "doc", "url": "https://x/2", "updated_at": None, "score": 1 / 61},
        ],
    }
