"""BM25 stays exact through the owner's writes, and its damage is found and said."""

import random
from collections.abc import Iterator
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings

from indexer import lexical, store
from search.normalise import normalise
from search.services import search
from search.types import SearchRequest, SearchResult
from tests.postgres import TestIndex, row

WORDS = [f"word{n}" for n in range(120)]


@pytest.fixture(autouse=True)
def first_axis() -> Iterator[None]:
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        yield


def words_of(result: SearchResult) -> list[tuple[str, float]]:
    """(id, content score) of the rows that the content ranker brought, in its order."""
    rows = [p.ranked for p in result.trace.pool if "sparse" in p.ranked.ranks]
    rows.sort(key=lambda r: r.ranks["sparse"])
    return [(r.vector_id, r.scores["sparse"]) for r in rows]


def ask(query: str, **options: Any) -> SearchResult:
    return search(request=SearchRequest(query, fusion="sparse_only", **options))


def text(chooser: random.Random) -> str:
    """A text of uneven length over a skewed vocabulary."""
    return " ".join(
        chooser.choices(WORDS, weights=range(len(WORDS), 0, -1), k=chooser.randint(3, 80))
    )


def assert_exact(index: TestIndex, queries: list[str], depth: int) -> None:
    """Hold the product's content ranker to exact scoring of every row.

    The index scan scores in single precision, so equal is equal to six digits, and rows that
    differ by less may stand in either order.
    """
    with store.connect(index.owner_url) as connection:
        for query in queries:
            result = ask(query)
            assert result.trace.engines["sparse"] == "bm25", result.degraded
            found = words_of(result)[:depth]
            exact = lexical.exact_scores(connection, "content", normalise(query), 10_000)
            scores = dict(exact)
            assert len(found) == min(depth, len(exact))
            assert np.allclose([s for _, s in found], [s for _, s in exact[:depth]], rtol=1e-5)
            assert np.allclose([scores[i] for i, _ in found], [s for _, s in found], rtol=1e-5)


@pytest.mark.bm25
def test_it_is_exact_after_1000_random_writes(index: TestIndex) -> None:
    chooser = random.Random(7)
    alive = {f"i:{n}": row(f"i:{n}", number=n + 1, content=text(chooser)) for n in range(600)}
    index.load(list(alive.values()))
    for step in range(4):
        changed, deleted = {}, []
        for n in range(250):
            action = chooser.choice(["insert", "update", "update", "delete"])
            if action == "insert":
                key = f"n:{step}:{n}"
                changed[key] = row(key, number=10_000 + step * 250 + n, content=text(chooser))
            elif action == "update":
                key = chooser.choice([k for k in alive if k not in deleted])
                changed[key] = row(key, number=alive[key]["number"], content=text(chooser))
            else:
                key = chooser.choice([k for k in alive if k not in deleted and k not in changed])
                deleted.append(key)
        index.load(list(changed.values()), deleted=deleted)
        alive = {k: v for k, v in {**alive, **changed}.items() if k not in deleted}
    assert index.execute("SELECT count(*) FROM search_docs") == [(len(alive),)]
    queries = [" ".join(chooser.sample(WORDS, chooser.randint(1, 5))) for _ in range(30)]
    assert_exact(index, queries, depth=50)


@pytest.mark.bm25
def test_it_is_exact_after_inserts_alone(index: TestIndex) -> None:
    """New rows fill gaps of earlier pages, which is enough to bring postings out of heap order."""
    chooser = random.Random(3)
    for step in range(4):
        index.load([row(f"i:{step}:{n}", content=text(chooser)) for n in range(300)])
    queries = [" ".join(chooser.sample(WORDS, 3)) for _ in range(30)]
    assert_exact(index, queries, depth=50)


def damage(index: TestIndex) -> None:
    """What no command of ours does: a bare UPDATE of every row."""
    index.execute("UPDATE search_docs SET indexed_at = now()")


@pytest.mark.bm25
def test_a_damaged_index_is_found_and_not_used(index: TestIndex) -> None:
    chooser = random.Random(5)
    index.load([row(f"i:{n}", number=n + 1, content=text(chooser)) for n in range(1_500)])
    assert ask("word7").trace.engines["sparse"] == "bm25"
    damage(index)

    with pytest.raises(CommandError, match=r"damaged.*check_index --mend"):
        call_check(index)
    result = ask("word7 word9")
    assert dict(result.trace.engines) == {"sparse": "core", "title": "core"}
    assert [d.stage for d in result.degraded] == ["bm25"]
    assert "has not passed" in result.degraded[0].reason
    assert result.hits

    assert "can be trusted" in call_check(index, mend=True)
    healed = ask("word7 word9")
    assert healed.trace.engines["sparse"] == "bm25", healed.degraded
    assert healed.degraded == ()
    assert_exact(index, ["word7 word9", "word50"], depth=50)


@pytest.mark.bm25
def test_a_write_without_a_probe_is_not_trusted(index: TestIndex) -> None:
    """A command that died before its end leaves an index that says so."""
    index.load([row("i:1", number=1, content="lighthouse")])
    with index.writer() as writer:
        writer.store([row("i:2", number=2, content="lighthouse keeper")])
    result = ask("lighthouse")
    assert result.trace.engines["sparse"] == "core"
    assert "written after the last exactness probe" in result.degraded[0].reason
    assert len(result.hits) == 2
    index.load([])  # the next command makes up for it
    assert ask("lighthouse").trace.engines["sparse"] == "bm25"


def call_check(index: TestIndex, **options: Any) -> str:
    import os

    output = StringIO()
    os.environ["INDEX_OWNER_URL"] = index.owner_url
    try:
        call_command("check_index", stdout=output, **options)
    finally:
        del os.environ["INDEX_OWNER_URL"]
    return output.getvalue()


def test_the_core_engine_reaches_every_row_that_holds_a_word(index: TestIndex) -> None:
    """Rare words bound the cost; when they bring too little, common words are ranked too."""
    rows = [row(f"i:{n:03}", number=n + 1, content=f"common filler{n}") for n in range(250)]
    rows += [row(f"j:{n}", number=900 + n, content="common rarity") for n in range(3)]
    index.load(rows)
    with override_settings(SEARCH_LEXICAL_ENGINE="core", SEARCH_CORE_ROWS=5):
        result = ask("common rarity", top_k=50)
    found = [hit.row.vector_id for hit in result.hits]
    assert set(found[:3]) == {"j:0", "j:1", "j:2"}
    assert len(found) == 50
    assert result.trace.engines["sparse"] == "core"
    assert result.degraded == (), "asked for by a setting, so not a degradation"


@pytest.mark.bm25
def test_without_the_extension_the_core_engine_answers(index: TestIndex) -> None:
    index.load([row("i:1", number=1, title="Lighthouse", content="lighthouse")])
    from tests import postgres

    with postgres.psycopg.connect(postgres.url_of(index.name), autocommit=True) as connection:
        connection.execute("DROP EXTENSION pg_textsearch CASCADE")
    result = ask("lighthouse")
    assert [hit.row.vector_id for hit in result.hits] == ["i:1"]
    assert dict(result.trace.engines) == {"sparse": "core", "title": "core"}
    assert result.degraded == ()
    index.load([row("i:2", number=2, content="lighthouse keeper")])
    assert len(ask("lighthouse").hits) == 2


@pytest.mark.parametrize("ties", [150, 350, 2_500])
def test_ties_beyond_a_window_keep_the_order_of_ids(index: TestIndex, ties: int) -> None:
    """Every row scores the same, so ids decide, though the index gives ties in no order."""
    numbers = list(range(ties))
    random.Random(1).shuffle(numbers)
    index.load([row(f"r:{n:05}", type="release", content="same text") for n in numbers])
    result = ask("same", top_k=50)
    assert [hit.row.vector_id for hit in result.hits] == [f"r:{n:05}" for n in range(50)]
