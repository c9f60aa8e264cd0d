"""Why is it (not) here: every end that a row's way can take, and places counted exactly."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from django.test.utils import override_settings

from search import rankers, why
from search.inspection.stories import told
from search.places import fused_places
from search.services import search
from search.types import Filters, SearchRequest, SearchResult
from search.why import Explanation
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


def at(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def explained(result: SearchResult, text: str) -> Explanation:
    return why.why(result=result, text=text)


def stage(result: SearchResult, text: str) -> str:
    best = explained(result, text).best
    assert best is not None
    return best.stage


def load_issues(index: TestIndex, count: int, **fields: Any) -> None:
    """Issues of which each is farther from the query, and longer, than the one before."""
    index.load(
        [
            row(
                f"i:{n:03}",
                number=n + 1,
                title=f"word {n}",
                content="word " + "filler " * n,
                embedding=at(n / 1000),
                **fields,
            )
            for n in range(count)
        ]
    )


@pytest.mark.parametrize(
    ("query", "engine", "used"),
    [
        ("word", "auto", "bm25"),
        ("word filler", "auto", "bm25"),
        ("word", "core", "core"),
        ("filler word", "core", "core"),
        ("(", "auto", "literal"),
    ],
)
def test_places_are_those_of_the_search(
    index: TestIndex, query: str, engine: str, used: str
) -> None:
    """Inside the first window the exact place is the rank that the ranker gave, ties included."""
    same = [row(f"t:{n}", number=500 + n, content="word (", embedding=at(0.01)) for n in range(9)]
    far = [
        row(f"i:{n:03}", number=n + 1, title="word", content="( word " + "filler " * (n % 7),
            embedding=at((n % 31) / 100))
        for n in range(150)
    ]  # fmt: skip
    index.load(same + far)
    with override_settings(SEARCH_LEXICAL_ENGINE=engine):
        result = ask(query, top_k=50)
        assert result.trace.engines["sparse"] == used
        for placed in result.trace.pool:
            [story] = explained(result, placed.ranked.vector_id).stories
            for ranker, rank in placed.ranked.ranks.items():
                assert story.places[ranker].rank == rank, (ranker, placed)
                assert story.places[ranker].score == pytest.approx(placed.ranked.scores[ranker])


def test_a_place_beyond_the_window_is_counted(index: TestIndex) -> None:
    load_issues(index, 40)
    with override_settings(SEARCH_WINDOW=10, SEARCH_MAX_WINDOWS=1):
        result = ask("word", top_k=5, fusion="dense_only")
        [story] = explained(result, "i:029").stories
    assert story.stage == why.BEYOND
    assert story.places["dense"].rank == 30
    account = told(explained(result, "i:029"))
    assert account.headline.startswith("Not here")
    assert account.rows[0].views[0].ranked == 40


def test_a_title_that_covers_too_little_is_said(index: TestIndex) -> None:
    """Such a title is left out of the places, as the search leaves it out of its candidates."""
    index.load(
        [
            row("i:1", number=1, title="word alpha beta", content="word alpha beta"),
            row("i:2", number=2, title="word", content="word"),
            *(row(f"i:{n}", number=n, content="word") for n in range(3, 30)),
        ]
    )
    result = ask("word alpha beta", fusion="sparse_only")
    [whole], [part] = (explained(result, text).stories for text in ("i:1", "i:2"))
    assert whole.places["title"].rank == 1
    assert result.trace.candidates["title"] == 1
    assert "title" not in part.places
    views = told(explained(result, "i:2")).rows[0].views
    assert [v.note for v in views if v.ranker == "title"] == [
        "its title covers too little of the query"
    ]


def test_a_covering_title_beyond_the_window_was_not_missed(index: TestIndex) -> None:
    index.load(
        [row(f"i:{n:02}", number=n + 1, title="word " * (20 - n), content="x") for n in range(20)]
    )
    with override_settings(SEARCH_WINDOW=5, SEARCH_MAX_WINDOWS=1):
        result = ask("word", fusion="sparse_only", top_k=3)
        ends = {stage(result, f"i:{n:02}") for n in range(20)}
    assert why.BEYOND in ends and why.MISSED not in ends


def test_what_is_shown_folded_or_below_is_told_apart(index: TestIndex) -> None:
    thread = [
        row(f"c:{n}", type="issue_comment", number=1, comment_id=n + 1, content="word",
            embedding=at(n / 100))
        for n in range(3)
    ]  # fmt: skip
    index.load([*thread, row("i:2", number=2, content="word", embedding=at(0.5))])
    result = ask("word", top_k=1)
    assert stage(result, "c:0") == why.SHOWN
    assert stage(result, "c:1") == why.FOLDED
    assert stage(result, "i:2") == why.BELOW
    [story] = explained(result, "c:2").stories
    assert (story.entity_place, story.representative, story.final_place) == (1, "c:0", 3)


def test_a_whole_entity_is_told_from_its_best_row(index: TestIndex) -> None:
    comments = [
        row(f"c:{n:02}", type="issue_comment", number=1, content="word", embedding=at(n / 100))
        for n in range(30)
    ]
    index.load(comments)
    with override_settings(SEARCH_WINDOW=5):
        explanation = explained(ask("word", top_k=3), "acme/app#1")
    assert explanation.rows == 30
    assert explanation.best is not None and explanation.best.row.vector_id == "c:00"
    assert len(explanation.stories) == why.MOST_ROWS
    assert {story.stage for story in explanation.stories} == {why.SHOWN, why.FOLDED, why.LEFT_OUT}


def test_the_best_placed_rows_of_a_large_thread_are_found(index: TestIndex) -> None:
    """The newest rows of the thread are the worst placed: it is the place that counts."""
    comments = [
        row(f"c:{n:03}", type="issue_comment", number=1, content="other", embedding=at(1 + n / 500),
            updated_at=f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z")
        for n in range(300)
    ]  # fmt: skip
    index.load([row(f"i:{n}", number=n + 2, embedding=at(0.1)) for n in range(10)] + comments)
    with override_settings(SEARCH_WINDOW=5, SEARCH_MAX_WINDOWS=1):
        explanation = explained(ask("word", fusion="dense_only", top_k=3), "acme/app#1")
    best = explanation.best
    assert best is not None and best.row.vector_id == "c:000"
    assert best.places["dense"].rank == 11


@pytest.mark.parametrize(
    ("filters", "excluded"),
    [
        ({"repo": "acme/other"}, ("repo",)),
        ({"type": "doc", "state": "closed"}, ("type", "state")),
        ({"labels": ("bug", "gone")}, ("labels",)),
        ({"milestone": "v2"}, ("milestone",)),
        ({"assignee": "bob"}, ("assignee",)),
    ],
)
def test_the_filters_that_exclude_it_are_named(
    index: TestIndex, filters: dict[str, Any], excluded: tuple[str, ...]
) -> None:
    index.load([row("i:1", number=1, content="word", labels=["bug"], embedding=at(0))])
    [story] = explained(ask("word", **filters), "i:1").stories
    assert story.stage == why.FILTERED
    assert story.excluded_by == excluded


def test_a_row_without_a_time_is_excluded_by_a_bound_in_time(index: TestIndex) -> None:
    from datetime import UTC, datetime

    index.load([row("i:1", number=1, content="word", embedding=at(0))])
    [story] = explained(ask("word", since=datetime(2026, 1, 1, tzinfo=UTC)), "i:1").stories
    assert story.excluded_by == ("since",)


def test_a_row_that_no_ranker_can_place(index: TestIndex) -> None:
    index.load(
        [row("i:1", number=1, content="other"), row("i:2", number=2, content="word", title="word")]
    )
    assert stage(ask("word"), "i:1") == why.UNRANKED


def test_a_row_that_the_approximate_index_missed(
    index: TestIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_issues(index, 20)
    whole = rankers.dense
    monkeypatch.setattr(
        rankers, "dense", lambda *a, **k: [c for c in whole(*a, **k) if c.vector_id != "i:003"]
    )
    result = ask("word", fusion="dense_only", top_k=5)
    assert stage(result, "i:003") == why.MISSED
    assert "approximate index" in told(explained(result, "i:003")).headline


@pytest.mark.parametrize("text", ["acme/app#404", "no such row", "\0", "https://github.com/a/b"])
def test_what_the_index_does_not_hold_is_said(index: TestIndex, text: str) -> None:
    load_issues(index, 3)
    explanation = explained(ask("word"), text)
    assert explanation.rows == 0 and explanation.stories == ()
    assert told(explanation).headline


def test_every_form_of_a_name_finds_its_rows(index: TestIndex) -> None:
    index.load(
        [
            row("d:1", type="doc", doc_path="docs/a b.md", content="word"),
            row("c:1", type="diff", file_path="docs/a b.md", commit_sha="c0ffee12", content="word"),
            row("w:1", type="wiki_doc", doc_path="Home", content="word"),
            row("r:1", type="release", tag_name="v1", content="word"),
            row("v:1", type="pr_review", number=3, review_id=9, content="word"),
            row("m:1", type="pr_review_comment", number=3, comment_id=8, file_path="docs/a b.md",
                content="word"),
        ]
    )  # fmt: skip
    result = ask("word")
    for hit in result.hits:
        for shown in (hit, *hit.others):
            explanation = explained(result, shown.url)
            found = {story.row.vector_id for story in explanation.stories}
            assert shown.row.vector_id in found, shown.url
        assert explained(result, hit.entity_key).rows == 1 + len(hit.others)
    assert explained(result, "acme/app:docs/a b.md").rows == 2
    assert explained(result, "acme/app:Home").rows == 1
    assert explained(result, "acme/app@c0ffee").rows == 1


def test_a_count_that_takes_too_long_is_left_out(
    index: TestIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    from search import standing

    load_issues(index, 3)
    result = ask("word")
    monkeypatch.setattr(standing, "_PLACES", "SELECT pg_sleep(5)")
    with override_settings(SEARCH_STATEMENT_TIMEOUT_MS=100):
        explanation = explained(result, "i:000")
    assert set(explanation.uncounted) == {"dense", "sparse"}
    assert explanation.best is not None and explanation.best.stage == why.SHOWN


def test_fused_places_are_those_before_a_sort_by_time(index: TestIndex) -> None:
    index.load(
        [
            row(f"i:{n}", number=n + 1, content="word", embedding=at(n / 10),
                updated_at=f"2026-01-0{n + 1}T00:00:00Z")
            for n in range(5)
        ]
    )  # fmt: skip
    by_relevance = [placed.ranked.vector_id for placed in ask("word").trace.pool]
    by_time = [placed.ranked for placed in ask("word", sort="updated_desc").trace.pool]
    fused = fused_places(by_time)
    assert sorted(fused, key=fused.__getitem__) == by_relevance
    assert [ranked.vector_id for ranked in by_time] == list(reversed(by_relevance))
