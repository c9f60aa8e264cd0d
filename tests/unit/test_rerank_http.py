"""The HTTP reranker: each dialect over real HTTP, and answers that are partly wrong."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_django import Settings

from search.circuit import Circuit
from search.rerank import RerankOutcome, apply, rerank
from search.rerank_http import APIS, HttpReranker, parse
from tests.fakes import models_server as fake
from tests.fakes.models_server import ModelsServer

AMPLE_MS: Final = 15_000  # where nothing is slow but perhaps the machine
KEY: Final = "sk-very-secret"
TEXTS: Final = ("one", "three", "twelve")
SCORES: Final = (0.25, 0.5, 0.75)
PAIRS: Final = ((2, 0.75), (0, 0.25), (1, 0.5))  # best first or not, servers differ

ENVELOPES: Final[dict[str, Any]] = {
    "cohere": {
        "id": "07734bd2",
        "results": [{"index": i, "relevance_score": s} for i, s in PAIRS],
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    },
    "jina": {
        "model": "jina-reranker-v2-base-multilingual",
        "object": "list",
        "usage": {"total_tokens": 15},
        "results": [{"index": i, "relevance_score": s} for i, s in PAIRS],
    },
    "vllm": {
        "id": "rerank-1",
        "model": "bge",
        "usage": {"total_tokens": 15},
        "results": [
            {"index": i, "document": {"text": TEXTS[i]}, "relevance_score": s} for i, s in PAIRS
        ],
    },
    "tei": [{"index": i, "score": s} for i, s in PAIRS],
    "workers_ai": {
        "result": {"response": [{"id": i, "score": s} for i, s in PAIRS]},
        "success": True,
        "errors": [],
        "messages": [],
    },
}
BODIES: Final[dict[str, Any]] = {
    "cohere": {"model": "m", "query": "q", "documents": list(TEXTS), "top_n": 3},
    "jina": {
        "model": "m",
        "query": "q",
        "documents": list(TEXTS),
        "top_n": 3,
        "return_documents": False,
    },
    "vllm": {
        "model": "m",
        "query": "q",
        "documents": list(TEXTS),
        "top_n": 3,
        "truncate_prompt_tokens": -1,
    },
    "tei": {"query": "q", "texts": list(TEXTS), "raw_scores": False, "truncate": True},
    "workers_ai": {"query": "q", "contexts": [{"text": text} for text in TEXTS], "top_k": 3},
}


@pytest.fixture
def server() -> Iterator[ModelsServer]:
    with ModelsServer() as running:
        yield running


@pytest.fixture(autouse=True)
def use_server(server: ModelsServer, settings: Settings) -> None:
    settings.SEARCH_RERANKER = "http"
    settings.SEARCH_RERANK_URL = server.url("/v2/rerank")
    settings.SEARCH_RERANK_API = "cohere"
    settings.SEARCH_RERANK_API_KEY = KEY
    settings.SEARCH_RERANK_MODEL = "m"
    settings.SEARCH_RERANK_BUDGET_MS = AMPLE_MS


def run(texts: tuple[str, ...] = TEXTS) -> RerankOutcome:
    return rerank("q", texts, reranker=HttpReranker(), circuit=Circuit())


# --- The dialects --------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_each_dialect_is_spoken_and_understood(
    api: str, server: ModelsServer, settings: Settings
) -> None:
    settings.SEARCH_RERANK_API = api
    server.answer = fake.as_json(ENVELOPES[api])
    assert run() == RerankOutcome(SCORES, True)
    (request,) = server.requests
    assert request.body == BODIES[api]
    assert request.path == "/v2/rerank"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("asked", APIS)
@pytest.mark.parametrize("answered", ENVELOPES)
def test_a_gateway_may_answer_in_another_dialect(
    asked: str, answered: str, server: ModelsServer, settings: Settings
) -> None:
    settings.SEARCH_RERANK_API = asked
    server.answer = fake.as_json(ENVELOPES[answered])
    assert run().scores == SCORES


def test_data_is_also_a_list_of_results() -> None:
    assert parse({"data": [{"index": 0, "score": 1}]}, 1) == [1.0]


def test_without_a_key_none_is_sent(server: ModelsServer, settings: Settings) -> None:
    settings.SEARCH_RERANK_API_KEY = ""
    server.answer = fake.rerank_by_length()
    assert run().applied
    assert "authorization" not in server.requests[0].headers


def test_all_batches_come_together(server: ModelsServer, settings: Settings) -> None:
    settings.SEARCH_RERANK_BATCH = 7
    server.answer = fake.rerank_by_length()
    texts = tuple("x" * (1 + n * 13 % 50) for n in range(50))
    outcome = run(texts)
    assert outcome.scores == tuple(len(text) / 1000 for text in texts)
    assert sorted(len(request.body["documents"]) for request in server.requests) == [1] + [7] * 7


def test_text_that_utf8_cannot_hold_is_mended(server: ModelsServer) -> None:
    server.answer = fake.rerank_by_length()
    assert run(("a\ud800b", "c\0d", "日本語")).applied
    assert server.requests[0].body["documents"] == ["a?b", "c d", "日本語"]


# --- Answers that are partly wrong ---------------------------------------------------------------


def test_a_shuffled_partial_answer_with_doubles_and_strangers_loses_no_row(
    server: ModelsServer, caplog: pytest.LogCaptureFixture
) -> None:
    texts = tuple(f"text {n}" for n in range(20))
    answered = [17, 3, 11, 0, 19, 8, 5, 14, 2, 9, 6, 12, 1, 15]
    results = [{"index": i, "relevance_score": i / 100} for i in answered]
    results.insert(6, {"index": 3, "relevance_score": 0.99})  # the first one counts
    results[2:2] = [{"index": 20, "relevance_score": 1.0}, {"index": -1, "relevance_score": 1.0}]
    server.answer = fake.as_json({"results": results})
    outcome = run(texts)
    assert outcome.scores == tuple(n / 100 if n in answered else None for n in range(20))
    assert outcome.applied
    assert outcome.reason == "only 14 of 20 rows were scored"
    order = apply(range(20), outcome.scores)
    rest = [n for n in range(20) if n not in answered]
    assert order == sorted(answered, reverse=True) + rest
    assert "6 missing, 0 bad scores, 1 doubled, 2 bad indexes" in caplog.text


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity", "null", '"0.9"', "[]", "1e999"])
def test_a_score_that_is_no_number_leaves_its_row_unscored(
    score: str, server: ModelsServer
) -> None:
    body = f'[{{"index": 0, "score": {score}}}, {{"index": 1, "score": 0.5}}, {{"index": 2}}]'
    server.answer = fake.text(body.encode())
    outcome = run()
    assert outcome == RerankOutcome((None, 0.5, None), True, "only 1 of 3 rows were scored")


@pytest.mark.parametrize("position", ["0.0", '"0"', "null", "true", "3", "-1", "{}", "1e99"])
def test_an_index_that_names_no_text_is_ignored(position: str, server: ModelsServer) -> None:
    body = f'[{{"index": {position}, "score": 9}}, {{"index": 2, "score": 0.5}}, 7, null, []]'
    server.answer = fake.text(body.encode())
    assert run().scores == (None, None, 0.5)
