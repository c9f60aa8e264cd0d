"""The same question gets the same answer: again, after other insertions, in another process."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test.utils import override_settings

from search.services import search
from search.types import ROW_TYPES, Filters, SearchRequest, SearchResult
from tests.oracle import WorldRow, slow_search
from tests.postgres import BASE_DIR, TestIndex, row
from tests.postgres import Values as RowValues

REPOS = ("acme/app", "acme/lib")
WORDS = ("retry", "limit", "queue", "harbour", "window", "index")

FILTERS: dict[str, Filters] = {
    "none": Filters(),
    "repo": Filters(repo="acme/lib"),
    "type": Filters(type="diff"),
    "state": Filters(state="closed"),
    "labels": Filters(labels=("bug", "search")),
    "milestone": Filters(milestone="v1"),
    "assignee": Filters(assignee="ann"),
    "time": Filters(since=None, until=None),
    "several": Filters(repo="acme/app", state="open", labels=("bug",)),
}


def make_rows(count: int = 700) -> list[RowValues]:
    """Rows of all types with many folds, ties, null vectors and null times."""
    chooser = random.Random(11)
    rows = []
    for n in range(count):
        kind = chooser.choice(ROW_TYPES)
        rows.append(
            row(
                f"v:{n:04}",
                repo=chooser.choice(REPOS),
                type=kind,
                state=chooser.choice(["open", "closed"]),
                labels=chooser.sample(["bug", "search", "ui"], chooser.randint(0, 3)),
                milestone=chooser.choice(["", "v1"]),
                assignees=chooser.sample(["ann", "bo"], chooser.randint(0, 2)),
                number=chooser.randint(0, 40),
                doc_path=f"docs/{chooser.randint(0, 30)}.md" if kind == "doc" else "",
                file_path=f"docs/{chooser.randint(0, 30)}.md" if kind == "diff" else "",
                updated_at=chooser.choice([None, f"2026-0{chooser.randint(1, 9)}-01T00:00:00Z"]),
                title=chooser.choice(WORDS),
                # Of one length, so that scores are equal or clearly apart.
                content=" ".join(chooser.choices(WORDS, k=6)),
                embedding=chooser.choice(
                    [None, [chooser.choice([1.0, 0.5, 0.25, -0.5]), chooser.choice([0.5, 1.0])]]
                ),
            )
        )
    return rows


ROWS = make_rows()


@pytest.fixture(scope="module")
def big(make_index: Callable[[], TestIndex]) -> TestIndex:
    index = make_index()
    index.load(ROWS)
    return index


@pytest.fixture
def index(big: TestIndex, use_index: Callable[[TestIndex], TestIndex]) -> Iterator[TestIndex]:
    with override_settings(
        SEARCH_EMBEDDER="tests.embedders.FirstAxis", SEARCH_WINDOW=30, SEARCH_TITLE_COVERAGE=0.0
    ):
        yield use_index(big)


def ask(query: str = "retry limit", **options: Any) -> SearchResult:
    return search(request=SearchRequest(query, **options))


def answer(result: SearchResult) -> list[tuple[str, list[str]]]:
    return [
        (hit.entity_key, [hit.row.vector_id, *(o.row.vector_id for o in hit.others)])
        for hit in result.hits
    ]


def passes(values: RowValues, wanted: Filters) -> bool:
    """The filters, in Python."""
    return (
        (wanted.repo is None or values["repo"] == wanted.repo)
        and (wanted.type is None or values["type"] == wanted.type)
        and (wanted.state is None or values["state"] == wanted.state)
        and set(wanted.labels) <= set(values["labels"])
        and (wanted.milestone is None or values["milestone"] == wanted.milestone)
        and (wanted.assignee is None or wanted.assignee in values["assignees"])
    )


def world(index: TestIndex, wanted: Filters) -> list[WorldRow]:
    """Every row that passes the filters with its exact scores, ranked by nothing yet."""
    from search.types import Candidate

    query = "retry limit"
    measured = index.execute(
        """
        SELECT vector_id, 1 - (embedding <=> %s::halfvec) AS dense,
               -(content_fts <@> to_bm25query(%s, 'search_docs_content_bm25'))::real AS sparse,
               -(title_fts <@> to_bm25query(%s, 'search_docs_title_bm25'))::real AS title
          FROM search_docs
        """,
        str([1.0] + [0.0] * 383), query, query,
    )  # fmt: skip
    scores = {key: (dense, sparse or None, title or None) for key, dense, sparse, title in measured}
    return [
        WorldRow(
            Candidate(
                v["vector_id"],
                0.0,
                v["repo"],
                v["type"],
                v["number"],
                v["doc_path"],
                v["file_path"],
            ),
            dict(zip(("dense", "sparse", "title"), scores[v["vector_id"]], strict=True)),
        )
        for v in ROWS
        if passes(v, wanted)
    ]


@pytest.mark.bm25
@pytest.mark.parametrize("name", FILTERS)
def test_it_equals_the_oracle_for_every_top_k(index: TestIndex, name: str) -> None:
    wanted = FILTERS[name]
    everything = world(index, wanted)
    for top_k in range(1, 51):
        expected = slow_search(everything, ("dense", "sparse", "title"), top_k=top_k, window=30)
        result = ask(top_k=top_k, filters=wanted)
        assert answer(result) == expected, top_k
        assert result.complete


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("fusion", ["rrf", "dense_only", "sparse_only"])
@pytest.mark.parametrize("engine", ["auto", "core"])
def test_no_row_of_the_answer_breaks_a_filter(
    index: TestIndex, name: str, fusion: str, engine: str
) -> None:
    values = {v["vector_id"]: v for v in ROWS}
    with override_settings(SEARCH_LEXICAL_ENGINE=engine, SEARCH_DENSE_EXACT_ROWS=0):
        result = ask(top_k=50, filters=FILTERS[name], fusion=fusion)
    shown = [vector_id for _, ids in answer(result) for vector_id in ids]
    assert shown
    assert len(set(shown)) == len(shown)
    assert all(passes(values[vector_id], FILTERS[name]) for vector_id in shown)


def test_it_answers_the_same_50_times(index: TestIndex) -> None:
    first = answer(ask(top_k=20))
    assert all(answer(ask(top_k=20)) == first for _ in range(50))


def test_the_order_of_insertion_does_not_matter(
    index: TestIndex,
    make_index: Callable[[], TestIndex],
    use_index: Callable[[TestIndex], TestIndex],
) -> None:
    forwards = [answer(ask(top_k=50, fusion=f)) for f in ("rrf", "dense_only", "sparse_only")]
    backwards = make_index()
    backwards.load(ROWS[::-1])
    use_index(backwards)
    assert [
        answer(ask(top_k=50, fusion=f)) for f in ("rrf", "dense_only", "sparse_only")
    ] == forwards


SCRIPT = """
import json, django
django.setup()
from django.test.utils import override_settings
from search.services import search
from search.types import SearchRequest
with override_settings(
    SEARCH_EMBEDDER="tests.embedders.FirstAxis", SEARCH_WINDOW=30, SEARCH_TITLE_COVERAGE=0.0
):
    result = search(request=SearchRequest("retry limit", top_k=50))
print(json.dumps([[h.entity_key, [h.row.vector_id, *(o.row.vector_id for o in h.others)]]
                  for h in result.hits]))
"""


def test_two_hash_seeds_give_one_answer(index: TestIndex) -> None:
    expected = [[key, ids] for key, ids in answer(ask(top_k=50))]
    for seed in ("1", "2"):
        output = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "INDEX_DATABASE_URL": index.reader_url,
            },
            cwd=BASE_DIR,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert json.loads(output) == expected
