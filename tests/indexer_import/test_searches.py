"""The searches over an imported index: they answer as over the same data in a snapshot."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings

from indexer.load import load_snapshot
from indexer.reference_import import import_reference
from search.serializers import to_request
from search.services import answer
from search.types import ScanResult, SearchResult
from tests.indexer_import.generator import QUOTES, make
from tests.postgres import MODEL, TestIndex

Indexes = tuple[TestIndex, TestIndex]
QUESTION = "when did delegation to a subagent become mandatory"

REQUESTS: dict[str, dict[str, Any]] = {
    "hybrid": {"query": QUESTION},
    "hybrid, Japanese": {"query": "同じ入港通知が何通も届く", "top_k": 5},
    "dense": {"query": QUESTION, "fusion": "dense_only"},
    "sparse": {"query": "retry_limit", "fusion": "sparse_only", "top_k": 50},
    "sorted by update": {"query": QUESTION, "sort": "updated_desc"},
    "sorted by creation": {"query": QUESTION, "sort": "created_desc"},
    "labels": {"query": "notice", "labels": ["notify"]},
    "assignee and state": {"query": "notice", "assignee": "rosa-l", "state": "closed"},
    "type and window": {"query": "retry", "type": "diff", "since": "2026-02-01T00:00:00Z"},
    "reviews": {"query": "on_commit", "type": "pr_review", "state": "CHANGES_REQUESTED"},
    "graph": {"query": "on-call rota", "graph_expand": True, "graph_hops": 2},
    "content": {"query": "Harbor 0.9.0", "include_content": True},
    "nothing found": {"query": "notice", "labels": ["notifi"]},
    "scan": {"until": "2026-06-30T00:00:00Z", "top_k": 50},
    "scan by creation": {"since": "2026-01-01T00:00:00Z", "sort": "created_desc", "top_k": 50},
    "scan of a type": {"since": "2026-01-01T00:00:00Z", "type": "release"},
}


@pytest.fixture(scope="module")
def indexes(
    make_index: Callable[[], TestIndex], sample_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Indexes:
    """The sample imported from a deployment's files, and loaded from the snapshot."""
    imported, loaded = make_index(), make_index()
    folder = tmp_path_factory.mktemp("deployment")
    files = make(sample_path, folder)
    report = import_reference(
        imported.owner_url,
        exports=[files.d1],
        vectors=[files.vectors],
        record_files=[files.records],
        model=MODEL,
        on_bad_line=print,
    )
    assert report.bad == 0
    load_snapshot(sample_path, loaded.owner_url, on_bad_line=print)
    return imported, loaded


@pytest.fixture
def index(indexes: Indexes, use_index: Callable[[TestIndex], TestIndex]) -> TestIndex:
    """The imported index, which the application reads."""
    return use_index(indexes[0])


@pytest.fixture(autouse=True)
def model() -> Iterator[None]:
    with override_settings(SEARCH_RERANKER=""):
        yield


def shown(result: SearchResult | ScanResult) -> Any:
    """What a caller sees of an answer, but for how long it took."""
    if isinstance(result, ScanResult):
        return result.rows, result.truncated
    scores = [hit.ranked.score for hit in result.hits]
    entities = [(hit.entity_key, hit.row, hit.title, hit.url, hit.snippet) for hit in result.shown]
    others = [[(other.row, other.title, other.url) for other in hit.others] for hit in result.shown]
    contents = [hit.content for hit in result.hits]
    return entities, others, scores, contents, result.filters_unmatched, result.complete


@pytest.mark.parametrize("parameters", REQUESTS.values(), ids=REQUESTS.keys())
def test_an_imported_index_answers_as_a_loaded_one(
    indexes: Indexes,
    use_index: Callable[[TestIndex], TestIndex],
    index: TestIndex,
    parameters: dict[str, Any],
) -> None:
    answers = []
    for source in indexes:
        use_index(source)
        result = answer(request=to_request(parameters))
        assert result.degraded == ()
        answers.append(shown(result))
    assert answers[0] == answers[1]
    assert answers[0][0] or "notifi" in str(parameters)


def test_ten_results_are_ten_things_and_old_diffs_fold_newer_rows(
    index: TestIndex,
) -> None:
    result = answer(request=to_request({"query": QUESTION, "top_k": 10}))
    assert isinstance(result, SearchResult)
    assert len({hit.entity_key for hit in result.hits}) == 10
    assert result.trace.slot_entities <= 8
    assert any(hit.row.type == "diff" and hit.others for hit in result.hits)


@pytest.mark.parametrize("style", QUOTES)
def test_every_column_is_that_of_the_snapshot_in_every_style(
    indexes: Indexes,
    make_index: Callable[[], TestIndex],
    sample_path: Path,
    tmp_path: Path,
    style: str,
) -> None:
    index = make_index()
    files = make(sample_path, tmp_path, style)
    import_reference(
        index.owner_url,
        exports=[files.d1],
        vectors=[files.vectors],
        record_files=[files.records],
        model=MODEL,
        on_bad_line=print,
    )
    names = [
        name
        for (name,) in index.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'search_docs'"
            " AND column_name <> 'indexed_at' ORDER BY ordinal_position"
        )
    ]
    statement = f"SELECT {', '.join(names)} FROM search_docs ORDER BY vector_id"
    assert index.execute(statement) == indexes[1].execute(statement)
    edges = "SELECT * FROM doc_edges ORDER BY 1, 2"
    assert index.execute(edges) == indexes[1].execute(edges) != []
