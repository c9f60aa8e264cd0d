"""The search over a real index: what each stage promises, seen from outside."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connections
from django.test.utils import CaptureQueriesContext, override_settings

from search.errors import IndexUnavailable, RankerUnavailable
from search.services import search
from search.types import Filters, SearchRequest, SearchResult
from tests import embedders, postgres
from tests.postgres import TestIndex, row

pytestmark = pytest.mark.usefixtures("first_axis")


@pytest.fixture
def first_axis() -> Iterator[None]:
    """Queries point along the first axis."""
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        yield


def ask(query: str, **options: Any) -> SearchResult:
    filters = {name: options.pop(name) for name in list(options) if name in Filters.__slots__}
    return search(request=SearchRequest(query, filters=Filters(**filters), **options))


def ids(result: SearchResult) -> list[str]:
    return [hit.row.vector_id for hit in result.hits]


def at(angle: float) -> list[float]:
    """A unit vector at an angle, in radians, from the query's."""
    return [math.cos(angle), math.sin(angle)]


@pytest.mark.bm25
def test_it_finds_a_row_by_its_words_with_bm25(index: TestIndex) -> None:
    index.load([row("i:1", number=1, title="Retry limit", content="Retry limit\n\nwhy one retry")])
    result = ask("retry limit", fusion="sparse_only")
    assert ids(result) == ["i:1"]
    assert dict(result.trace.engines) == {"sparse": "bm25", "title": "bm25"}
    assert result.degraded == ()
    assert result.complete


def test_a_selective_filter_starves_no_ranker(index: TestIndex) -> None:
    """2,000 rows of one repository lie nearer to the query than the 20 of another."""
    near = [
        row(f"a:{n}", repo="acme/a", number=n + 1, content="query word", embedding=at(n / 10_000))
        for n in range(2_000)
    ]
    far = [
        row(f"b:{n:02}", repo="acme/b", number=n + 1, content="other", embedding=at(1 + n / 100))
        for n in range(20)
    ]
    index.load(near + far)
    exact = ask("query word", repo="acme/b", fusion="dense_only", top_k=10)
    with override_settings(SEARCH_DENSE_EXACT_ROWS=0):
        approximate = ask("query word", repo="acme/b", fusion="dense_only", top_k=10)
        assert approximate.trace.engines["dense"] == "hnsw"
    assert ids(exact) == ids(approximate) == [f"b:{n:02}" for n in range(10)]
    lexical = ask("query word", repo="acme/a", fusion="sparse_only", top_k=50)
    assert len(lexical.hits) == 50


@pytest.mark.parametrize("exact_rows", [0, 100_000])
def test_a_thread_of_20_000_comments_leaves_room_for_the_others(
    index: TestIndex, exact_rows: int
) -> None:
    thread = [
        row(f"ic:{n:05}", type="issue_comment", number=7, content="retry", embedding=at(n / 1e6))
        for n in range(20_000)
    ]
    others = [
        row(f"i:{n:02}", number=100 + n, content="a longer text with one retry", embedding=at(1))
        for n in range(60)
    ]
    index.load(thread + others)
    with override_settings(SEARCH_DENSE_EXACT_ROWS=exact_rows):
        for fusion in ("rrf", "dense_only", "sparse_only"):
            result = ask("retry", top_k=50, fusion=fusion)
            keys = [hit.entity_key for hit in result.hits]
            assert len(set(keys)) == 50, fusion
            assert keys[0] == "thread:acme/app:7"
            assert result.trace.windows == 2
            assert result.complete


def test_rows_without_a_direction_are_found_by_text(index: TestIndex) -> None:
    index.load(
        [
            row("i:null", number=1, content="lighthouse", embedding=None),
            row("i:zero", number=2, content="lighthouse", embedding=[0.0]),
            row("i:unit", number=3, content="lighthouse", embedding=at(0.1)),
        ]
    )
    for exact_rows in (0, 10):
        with override_settings(SEARCH_DENSE_EXACT_ROWS=exact_rows):
            assert set(ids(ask("lighthouse"))) == {"i:null", "i:zero", "i:unit"}
            assert ids(ask("lighthouse", fusion="dense_only")) == ["i:unit"]


LITERALS = [
    "POL-358", "don't", "foo::bar", "a.b", '"', "*", "AND", "NEAR(", "(", "^", "\\", "foo:*bar",
    "a & b | c", "C++", "#1234", "ﾊﾝｶｸカナ", "か\u3099くせい", "🙂", "%", "_", "'", "<->", "!x",
    ":*", "x" * 5_000, "src/app/views.py", "\u202eabc", "--; DROP TABLE search_docs", "$$", "{}",
    "%s",
]  # fmt: skip


@pytest.mark.parametrize("engine", ["auto", "core"])
def test_the_row_that_holds_a_literal_is_found(index: TestIndex, engine: str) -> None:
    rows = [
        row(f"i:{n}", number=n + 1, content=f"the text {literal} stands here")
        for n, literal in enumerate(LITERALS)
    ]
    index.load(rows)
    with override_settings(SEARCH_LEXICAL_ENGINE=engine):
        for n, literal in enumerate(LITERALS):
            result = ask(literal, fusion="sparse_only", top_k=50)
            assert f"i:{n}" in ids(result), literal[:40]


def test_an_old_diff_that_answers_stays_in_front_of_newer_rows(index: TestIndex) -> None:
    path = "rules/limit.md"
    index.load(
        [
            row("d:1", type="doc", doc_path=path, content=path, embedding=at(0.6),
                updated_at="2026-07-30T00:00:00Z"),
            row("c:new", type="diff", file_path=path, commit_sha="322d820", content="tidy",
                embedding=at(0.5), updated_at="2026-07-28T00:00:00Z"),
            row("c:old", type="diff", file_path=path, commit_sha="7fd9d5e",
                content="introduce the limit", embedding=at(0.1),
                updated_at="2026-07-27T00:00:00Z"),
            row("c:two", type="diff", file_path="docs/b.md", commit_sha="7fd9d5e",
                content="introduce the limit", embedding=at(0.2),
                updated_at="2026-07-27T00:00:00Z"),
        ]
    )  # fmt: skip
    result = ask("when was the limit introduced")
    assert ids(result) == ["c:old", "c:two"], "two files of one commit are two entities"
    assert {other.row.vector_id for other in result.hits[0].others} == {"c:new", "d:1"}
    newest = ask("when was the limit introduced", sort="updated_desc")
    assert ids(newest) == ["d:1", "c:two"]


def test_a_time_sort_does_not_depend_on_top_k(index: TestIndex) -> None:
    index.load(
        [
            row(f"i:{n:03}", number=n + 1, content="retry", embedding=at(n / 300),
                updated_at=f"2026-01-{n % 28 + 1:02}T{n % 24:02}:00:00Z" if n % 5 else None,
                created_at=f"2025-01-{n % 28 + 1:02}T00:00:00Z")
            for n in range(200)
        ]
    )  # fmt: skip
    for sort in ("updated_desc", "created_desc"):
        largest = ids(ask("retry", top_k=50, sort=sort))
        for top_k in (1, 7, 10, 49):
            assert ids(ask("retry", top_k=top_k, sort=sort)) == largest[:top_k]


def test_the_number_of_statements_does_not_depend_on_top_k(index: TestIndex) -> None:
    index.load(
        [row(f"i:{n}", number=n + 1, content="retry", embedding=at(n / 100)) for n in range(60)]
    )
    counts = set()
    for top_k in (1, 10, 50):
        with CaptureQueriesContext(connections["index"]) as queries:
            assert len(ask("retry", top_k=top_k).hits) == top_k
        counts.add(len(queries))
    # BEGIN, state, three rankers each in SAVEPOINT, SELECT, RELEASE, then rows, COMMIT. These rows
    # have no title; where some title matches, one more asks how much of the query it covers.
    # The core engine asks for the frequencies of the words first, once a lexical ranker.
    assert counts == {13 if postgres.has_bm25() else 15}


@pytest.mark.parametrize(
    ("embedder", "reason"),
    [
        ("Short", "8 dimensions, the index 384"),
        ("OtherModel", "embedded by somebody/else"),
        ("Down", "refused the connection"),
        ("Zero", "zero or not finite"),
    ],
)
def test_without_a_usable_vector_text_answers_and_says_so(
    index: TestIndex, embedder: str, reason: str
) -> None:
    index.load([row("i:1", number=1, content="retry", embedding=at(0))])
    with override_settings(SEARCH_EMBEDDER=f"tests.embedders.{embedder}"):
        result = ask("retry")
        assert ids(result) == ["i:1"]
        assert [(d.stage, reason in d.reason) for d in result.degraded] == [("dense", True)]
        assert not result.complete and reason in (result.incomplete_reason or "")
        with pytest.raises(RankerUnavailable, match=reason):
            ask("retry", fusion="dense_only")


@pytest.mark.parametrize(
    ("embedder", "named"),
    [("Short", "dimensions 384, the settings ask for 8"), ("OtherModel", "somebody/else")],
)
def test_a_check_names_what_differs(index: TestIndex, embedder: str, named: str) -> None:
    index.load([row("i:1", number=1, content="retry", embedding=at(0))])
    with override_settings(SEARCH_EMBEDDER=f"tests.embedders.{embedder}"):
        messages = run_checks(databases=["index"])
    assert [m.id for m in messages if named in m.msg] == ["ingest_readonly.E006"]


def test_the_checks_are_silent_on_a_good_index(index: TestIndex) -> None:
    index.load([row("i:1", number=1, content="retry", embedding=at(0))])
    assert [
        m for m in run_checks(databases=["index"]) if m.id.startswith("ingest_readonly.E")
    ] == []


def test_a_repeated_query_is_not_embedded_twice(index: TestIndex) -> None:
    index.load([row("i:1", number=1, content="retry", embedding=at(0))])
    with override_settings(SEARCH_EMBEDDER="tests.embedders.Counting"):
        for _ in range(3):
            ask("a question asked three times")
    assert embedders.Counting.asked == 1


def test_an_empty_index_is_no_empty_answer(index: TestIndex) -> None:
    with pytest.raises(IndexUnavailable, match="nothing has been loaded"):
        ask("retry")


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"repo": "app"}, [("repo", "app", ("acme/app", "other/app-tools"))]),
        ({"repo": "Acme/App"}, [("repo", "Acme/App", ("acme/app",))]),
        ({"milestone": "v2"}, [("milestone", "v2", ("v2.0",))]),
        ({"assignee": "Ann"}, [("assignee", "Ann", ("ann",))]),
        ({"labels": ("bug", "enhancment")}, [("labels", "enhancment", ("enhancement",))]),
        ({"repo": "acme/app", "type": "release"}, []),
    ],
)
def test_filters_that_match_nothing_are_named(
    index: TestIndex, filters: dict[str, Any], expected: list[Any]
) -> None:
    index.load(
        [
            row("i:1", number=1, content="retry", labels=["bug", "enhancement"], assignees=["ann"],
                milestone="v2.0", embedding=at(0)),
            row("i:2", repo="other/app-tools", number=1, content="retry", embedding=at(0)),
        ]
    )  # fmt: skip
    result = ask("retry", **filters)
    assert result.hits == ()
    found = [(u.filter, u.value, u.suggestions) for u in result.filters_unmatched]
    assert found == expected


def test_a_statement_that_runs_too_long_costs_its_ranker_alone(
    index: TestIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    from search import rankers

    index.load([row("i:1", number=1, content="retry", embedding=at(0))])
    monkeypatch.setattr(rankers, "_DENSE_EXACT", "SELECT pg_sleep(5)")
    with override_settings(SEARCH_STATEMENT_TIMEOUT_MS=100):
        result = ask("retry")
    assert ids(result) == ["i:1"]
    assert [(d.stage, d.reason) for d in result.degraded] == [("dense", "stopped after 100 ms")]


def test_the_index_is_unavailable_when_its_server_is(
    index: TestIndex, use_index: Callable[[TestIndex], TestIndex]
) -> None:
    use_index(TestIndex("no_such_database"))
    connections["index"].settings_dict["OPTIONS"]["pool"]["timeout"] = 0.5
    try:
        with pytest.raises(IndexUnavailable):
            ask("retry")
    finally:
        connections["index"].settings_dict["OPTIONS"]["pool"]["timeout"] = 10


def test_a_title_counts_only_if_it_covers_the_question(index: TestIndex) -> None:
    index.load(
        [
            row("i:1", number=1, title="The retry limit of notices", content="one"),
            row("i:2", number=2, title="limit", content="two"),
            *(row(f"i:{n}", number=n, title=f"other {n}", content="three") for n in range(3, 40)),
        ]
    )
    title_ranks = {
        share: {p.ranked.vector_id for p in titles_ranked(share) if "title" in p.ranked.ranks}
        for share in (0.0, 0.7)
    }
    assert title_ranks == {0.0: {"i:1", "i:2"}, 0.7: {"i:1"}}


def titles_ranked(share: float) -> Any:
    with override_settings(SEARCH_TITLE_COVERAGE=share):
        return ask("retry limit", fusion="sparse_only").trace.pool


@pytest.mark.parametrize("fusion", ["rrf", "sparse_only", "dense_only"])
def test_no_ranker_is_no_empty_answer(
    index: TestIndex, monkeypatch: pytest.MonkeyPatch, fusion: str
) -> None:
    from search import core_text, rankers

    index.load([row("i:1", number=1, content="retry", embedding=at(0))])
    for module, name in ((rankers, "_BM25"), (rankers, "_DENSE_EXACT"), (core_text, "_TERMS")):
        monkeypatch.setattr(module, name, "SELECT pg_sleep(5)")
    with (
        override_settings(SEARCH_STATEMENT_TIMEOUT_MS=100),
        pytest.raises(RankerUnavailable, match=r"No ranker of this search could run.*100 ms"),
    ):
        ask("retry", fusion=fusion)


def test_a_value_that_cannot_be_read_is_named(index: TestIndex) -> None:
    """Somebody else's writer may store a time that no calendar of ours holds."""
    index.load([row("i:1", number=1, content="retry", embedding=at(0))])
    index.execute("UPDATE search_docs SET updated_at = 'infinity'")
    with pytest.raises(RankerUnavailable, match="timestamp too large"):
        ask("retry")
