"""The HTTP reranker against a server that fails in every way; each row comes back, in time."""

import logging
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_django import Settings

from search.circuit import Circuit
from search.rerank import RerankError, RerankOutcome, rerank, rerank_configured
from search.rerank_http import HttpReranker
from tests.fakes import models_server as fake
from tests.fakes.models_server import ModelsServer

AMPLE_MS: Final = 15_000  # where nothing is slow but perhaps the machine
BUDGET_MS: Final = 400
LOOSE: Final = 20  # times the budget: these tests are about ending at all, not about speed
KEY: Final = "sk-very-secret"
TEXTS: Final = ("one", "three", "twelve")


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


def run(circuit: Circuit | None = None) -> RerankOutcome:
    return rerank("q", TEXTS, reranker=HttpReranker(), circuit=circuit or Circuit())


HUGE = b'{"results": [' + b" " * 1_100_000 + b"]}"
FAILURES: Final[dict[str, tuple[fake.Answer, str]]] = {
    "500": (fake.status(500), "the reranker answered with status 500"),
    "503": (fake.status(503), "the reranker answered with status 503"),
    "401": (fake.status(401), "the reranker answered with status 401"),
    "429": (fake.status(429, ("Retry-After", "1")), "the reranker answered with status 429"),
    "redirect": (
        fake.status(302, ("Location", "/elsewhere")),
        "the reranker answered with status 302",
    ),
    "html": (
        fake.text(b"<html>ok</html>", ("Content-Type", "text/html")),
        "the reranker answered with something that is not JSON",
    ),
    "cut json": (
        fake.text(b'{"results": [{"index": 0,'),
        "the reranker answered with something that is not JSON",
    ),
    "not utf-8": (fake.text(b'"\xff"'), "the reranker answered with something that is not JSON"),
    "deep json": (
        fake.text(b"[" * 200_000),
        "the reranker answered with something that is not JSON",
    ),
    "empty": (fake.text(b""), "the reranker answered with something that is not JSON"),
    "huge": (fake.text(HUGE), "the reranker answered with more than 1,000,000 bytes"),
    "compressed": (
        fake.text(b"\x1f\x8b", ("Content-Encoding", "gzip")),
        "the reranker answered in a compressed form that was not asked for",
    ),
    "no list": (
        fake.as_json({"detail": "ok"}),
        "the reranker answered without a list of results",
    ),
    "empty list": (fake.as_json([]), "the reranker answered without a usable score"),
    "hang up": (fake.hang_up(), "the reranker could not be reached (RemoteProtocolError)"),
    "hang": (fake.hang(), f"the reranker did not answer within {BUDGET_MS} ms"),
    "drip body": (fake.drip_body(), f"the reranker did not answer within {BUDGET_MS} ms"),
    "drip head": (fake.drip_head(), f"the reranker did not answer within {BUDGET_MS} ms"),
}
ENDLESS: Final = {"hang", "drip body", "drip head"}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_a_reason_and_every_row_comes_back_in_time(
    failure: str, server: ModelsServer, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    if failure in ENDLESS:
        settings.SEARCH_RERANK_BUDGET_MS = BUDGET_MS
    server.answer, reason = FAILURES[failure]
    start = time.monotonic()
    outcome = run()
    assert time.monotonic() - start < LOOSE * BUDGET_MS / 1000
    assert outcome == RerankOutcome((None,) * 3, reason=reason)
    assert len(server.requests) == 1  # no retry, no redirect followed
    assert KEY not in caplog.text
    assert "secret" not in str(outcome)


def test_nobody_listening_is_a_reason(settings: Settings) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        settings.SEARCH_RERANK_URL = f"http://127.0.0.1:{closed.getsockname()[1]}/rerank"
        assert run().reason == "the reranker could not be reached (ConnectError)"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("SEARCH_RERANK_URL", "", "SEARCH_RERANK_URL is not set"),
        ("SEARCH_RERANK_URL", "nonsense", "its URL or key is not valid"),
        ("SEARCH_RERANK_URL", "ftp://127.0.0.1/", "its URL or key is not valid"),
        ("SEARCH_RERANK_URL", "http://127.0.0.1:99999/", "could not be reached"),
        ("SEARCH_RERANK_API", "other", "must be one of cohere, jina, vllm, tei, workers_ai"),
        ("SEARCH_RERANK_API_KEY", f"{KEY}\nX-Evil: 1", "its URL or key is not valid"),
        ("SEARCH_RERANK_API_KEY", f"{KEY}鍵", "its URL or key is not valid"),
    ],
)
def test_a_setting_that_cannot_work_is_a_reason_without_the_key(
    name: str, value: str, reason: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    setattr(settings, name, value)
    outcome = run()
    assert reason in (outcome.reason or "")
    assert KEY not in str(outcome) + caplog.text


def test_an_error_quotes_nothing_of_the_call(settings: Settings) -> None:
    settings.SEARCH_RERANK_API_KEY = f"{KEY}\n"
    with pytest.raises(RerankError) as caught:
        HttpReranker().score("q", TEXTS)
    error: BaseException | None = caught.value
    while error is not None:  # what a traceback would print
        assert KEY not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


# --- The circuit ---------------------------------------------------------------------------------


def test_a_server_that_fails_is_left_alone_and_then_tried_again(server: ModelsServer) -> None:
    now = [0.0]
    circuit = Circuit(clock=lambda: now[0])
    server.answer = fake.each(fake.status(503), fake.rerank_by_length())
    assert run(circuit).reason == "the reranker answered with status 503"
    assert run(circuit).reason == (
        "the reranker is skipped for another 30 s after a failure: "
        "the reranker answered with status 503"
    )
    assert len(server.requests) == 1
    now[0] += 30
    assert run(circuit).applied
    assert run(circuit).applied
    assert len(server.requests) == 3


def test_the_circuit_of_a_configured_server_outlives_a_search(server: ModelsServer) -> None:
    server.answer = fake.status(503)
    assert not rerank_configured("q", TEXTS).applied
    assert "skipped" in (rerank_configured("q", TEXTS).reason or "")
    assert len(server.requests) == 1


def test_batches_of_which_one_fails_keep_the_scores_of_the_others(
    server: ModelsServer, settings: Settings
) -> None:
    settings.SEARCH_RERANK_BATCH = 2
    good = fake.rerank_by_length()

    def fail_with_three(handler: fake.Handler, body: Any) -> None:
        chosen = fake.status(500) if "twelve" in body["documents"] else good
        chosen(handler, body)

    server.answer = fail_with_three
    outcome = run()
    assert outcome.scores == (0.003, 0.005, None)
    assert outcome.reason == ("only 2 of 3 rows were scored: the reranker answered with status 500")
