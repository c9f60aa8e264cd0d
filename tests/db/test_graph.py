"""Neighbours of the results over mentions: which, how far, in which order, and in which place."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext, override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from search import graph
from search.services import search
from search.types import Filters, SearchRequest, SearchResult
from tests.postgres import TestIndex, edge, row

pytestmark = pytest.mark.usefixtures("first_axis")


@pytest.fixture
def first_axis() -> Iterator[None]:
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        yield


def ask(query: str = "anchor", **options: Any) -> SearchResult:
    filters = {name: options.pop(name) for name in list(options) if name in Filters.__slots__}
    options = {"graph_expand": True, "fusion": "sparse_only", **options}
    return search(request=SearchRequest(query, filters=Filters(**filters), **options))


def page(name: str, content: str = "other", **fields: Any) -> dict[str, Any]:
    return row(f"w:{name}", type="wiki_doc", doc_path=name, content=content, **fields)


def found(result: SearchResult) -> list[tuple[str, int, str]]:
    """(id, hop, name of the result it was reached from) of each neighbour."""
    return [(one.row.vector_id, one.hop, one.source_name) for one in result.neighbours]


def slow_neighbours(
    result: SearchResult, rows: list[dict[str, Any]], edges: list[tuple[str, str]], hops: int
) -> list[tuple[str, int, str]]:
    """Breadth first from each result by itself, over rows that exist; then the best of each."""
    known = {one["vector_id"]: one for one in rows}
    starts = [hit.row.vector_id for hit in result.hits]
    best: dict[str, tuple[int, int]] = {}
    for place, start in enumerate(starts):
        reached = {start: 0}
        for hop in range(1, hops + 1):
            for here in [name for name, at in reached.items() if at == hop - 1]:
                for a, b in edges:
                    for source, target in ((a, b), (b, a)):
                        if source == here and target in known:
                            reached.setdefault(target, hop)
        for name, hop in reached.items():
            if name not in starts:
                best[name] = min(best.get(name, (99, 99)), (hop, place))
    filters = result.request.filters
    kept = [
        name
        for name in best
        if filters.repo in (None, known[name]["repo"])
        and set(filters.labels) <= set(known[name]["labels"])
    ]
    kept.sort(key=lambda name: (*best[name], name))
    return [(name, best[name][0], known[starts[best[name][1]]]["doc_path"]) for name in kept]


def test_neighbours_are_those_of_a_slow_walk(index: TestIndex) -> None:
    choice = random.Random(7)
    words = ["lighthouse", "harbour", "ferry"]
    rows = [
        page(
            f"{n:02}",
            content=words[n] if n < 3 else f"{choice.choice(words)} {choice.choice(words)}"
            if n % 4 == 0 else "other",
            repo=f"acme/{choice.choice(['app', 'web'])}",
            labels=[label for label in ("a", "b") if choice.random() < 0.5],
        )
        for n in range(40)
    ]  # fmt: skip
    names = [one["vector_id"] for one in rows] + ["w:missing", "w:gone"]
    edges = list({(choice.choice(names), choice.choice(names)) for _ in range(60)})
    index.load(rows, [edge(a, b) for a, b in edges])

    @settings(max_examples=60, deadline=None)
    @given(
        query=st.sampled_from(words),
        hops=st.integers(1, 2),
        top_k=st.integers(1, 20),
        repo=st.sampled_from([None, "acme/app"]),
        labels=st.sampled_from([(), ("a",), ("a", "b")]),
    )
    def check(query: str, hops: int, top_k: int, repo: str | None, labels: tuple[str, ...]) -> None:
        with override_settings(SEARCH_GRAPH_LIMIT=1_000):
            result = ask(query, graph_hops=hops, top_k=top_k, repo=repo, labels=labels)
        plain = ask(query, graph_expand=False, top_k=top_k, repo=repo, labels=labels)
        assert result.hits == plain.hits, "a page folds with nothing: the results stay as they are"
        assert found(result) == slow_neighbours(result, rows, edges, hops)

    check()


def test_both_directions_and_the_shortest_way(index: TestIndex) -> None:
    pages = [page("a", "anchor anchor"), page("b"), page("c"), page("d"), page("e", "anchor")]
    links = [("a", "b"), ("c", "a"), ("b", "d"), ("d", "e"), ("b", "c"), ("a", "a"), ("a", "x")]
    index.load(pages, [edge(f"w:{a}", f"w:{b}") for a, b in links])
    assert found(ask(top_k=1)) == [("w:b", 1, "a"), ("w:c", 1, "a")]
    far = ask(top_k=1, graph_hops=2)
    assert found(far) == [("w:b", 1, "a"), ("w:c", 1, "a"), ("w:d", 2, "a")]
    both = ask(top_k=2, graph_hops=2)
    assert found(both) == [("w:b", 1, "a"), ("w:c", 1, "a"), ("w:d", 1, "e")]


def test_a_missing_page_is_no_neighbour_and_no_way(index: TestIndex) -> None:
    index.load(
        [page("a", "anchor"), page("b")], [edge("w:a", "w:missing"), edge("w:b", "w:missing")]
    )
    assert found(ask(graph_hops=2)) == []


def test_the_way_may_lead_over_a_page_that_a_filter_leaves_out(index: TestIndex) -> None:
    index.load(
        [page("a", "anchor", labels=["x"]), page("b"), page("c", labels=["x"])],
        [edge("w:a", "w:b"), edge("w:b", "w:c")],
    )
    assert found(ask(graph_hops=2, labels=("x",))) == [("w:c", 2, "a")]


def test_a_row_of_a_shown_entity_goes_to_that_entity(index: TestIndex) -> None:
    """A mention of the file's old diff, of a comment of a shown thread, and of a new file twice."""
    index.load(
        [
            row("d:1", type="doc", doc_path="a.md", content="anchor"),
            row("c:1", type="diff", file_path="a.md", commit_sha="1", content="other"),
            row("i:7", number=7, title="anchor", content="a thread about it"),
            row("ic:7", type="issue_comment", number=7, content="other"),
            row("c:2", type="diff", file_path="b.md", commit_sha="1", content="other"),
            row("c:3", type="diff", file_path="b.md", commit_sha="2", content="other"),
        ],
        [edge("d:1", "c:1"), edge("d:1", "ic:7"), edge("i:7", "c:2"), edge("c:3", "i:7")],
    )
    result = ask()
    by_key = {hit.entity_key: hit for hit in result.hits}
    assert set(by_key) == {"file:acme/app:a.md", "thread:acme/app:7"}
    assert [o.row.vector_id for o in by_key["file:acme/app:a.md"].others] == ["c:1"]
    assert [o.row.vector_id for o in by_key["thread:acme/app:7"].others] == ["ic:7"]
    [neighbour] = result.neighbours
    assert neighbour.entity_key == "file:acme/app:b.md"
    assert (neighbour.row.vector_id, [o.row.vector_id for o in neighbour.others]) == (
        "c:2",
        ["c:3"],
    )


def test_a_folded_row_is_a_start_too(index: TestIndex) -> None:
    index.load(
        [
            row("i:7", number=7, title="anchor", content="anchor"),
            row("ic:7", type="issue_comment", number=7, content="a longer text with an anchor"),
            page("b"),
        ],
        [edge("ic:7", "w:b")],
    )
    result = ask()
    assert [other.row.vector_id for other in result.hits[0].others] == ["ic:7"]
    assert found(result) == [("w:b", 1, "i:7")]


def test_neighbours_are_outside_top_k_and_bounded(index: TestIndex) -> None:
    pages = [page(f"{n:02}", "anchor" if n < 3 else "other") for n in range(40)]
    index.load(pages, [edge("w:00", f"w:{n:02}") for n in range(3, 40)])
    result = ask(top_k=3)
    assert len(result.hits) == 3
    assert len(result.neighbours) == 20
    with override_settings(SEARCH_GRAPH_LIMIT=5):
        fewer = ask(top_k=3)
    assert fewer.neighbours == result.neighbours[:5]
    assert result.hits == ask(top_k=3, graph_expand=False).hits


def test_off_reads_nothing(index: TestIndex) -> None:
    index.load([page("a", "anchor"), page("b")], [edge("w:a", "w:b")])
    with CaptureQueriesContext(connections["index"]) as queries:
        result = ask(graph_expand=False, graph_hops=2)
    assert result.neighbours == ()
    assert not any("doc_edges" in query["sql"] for query in queries)


def test_no_result_has_no_neighbour(index: TestIndex) -> None:
    index.load([page("a")], [edge("w:a", "w:a")])
    assert ask("nowhere").shown == ()


def test_a_graph_that_cannot_be_read_costs_the_neighbours_alone(
    index: TestIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.load([page("a", "anchor"), page("b")], [edge("w:a", "w:b")])
    monkeypatch.setattr(graph, "_NEIGHBOURS", "SELECT pg_sleep(5)")
    with override_settings(SEARCH_STATEMENT_TIMEOUT_MS=100):
        result = ask()
    assert [one.row.vector_id for one in result.shown] == ["w:a"]
    assert [(d.stage, d.reason) for d in result.degraded] == [("graph", "stopped after 100 ms")]
    assert result.hits == ask(graph_expand=False).hits
