"""The rerank stage with backends in this process that behave badly."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from search import rerank as module
from search.circuit import Circuit
from search.rerank import NOT_CONFIGURED, RerankError, RerankOutcome, rerank, rerank_configured

QUICK_MS = 150


class Backend:
    """Scores with a function, and keeps what it was asked."""

    name = "backend"

    def __init__(self, score: Callable[[str, list[str]], Any]) -> None:
        self._score = score
        self.batches: list[list[str]] = []
        self.queries: list[str] = []

    def score(self, query: str, texts: Sequence[str]) -> Any:
        self.queries.append(query)
        self.batches.append(list(texts))
        return self._score(query, list(texts))


class ConfiguredBackend(Backend):
    """What SEARCH_RERANKER may name."""

    def __init__(self) -> None:
        super().__init__(lambda _, texts: [1.0] * len(texts))


class BrokenFactory:
    def __init__(self) -> None:
        raise RuntimeError("password=hunter2")


def by_length(_: str, texts: list[str]) -> list[float]:
    return [float(len(text)) for text in texts]


def run(backend: Backend, texts: Sequence[str], circuit: Circuit | None = None) -> RerankOutcome:
    return rerank("question", texts, reranker=backend, circuit=circuit or Circuit())


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a hanging backend waits for; set at the end, so that its thread ends."""
    event = threading.Event()
    yield event
    event.set()


def test_it_scores_every_row() -> None:
    assert run(Backend(by_length), ["a", "ccc", "bb"]) == RerankOutcome((1.0, 3.0, 2.0), True)


def test_rows_without_a_word_are_not_sent_and_stay_unscored() -> None:
    backend = Backend(by_length)
    assert run(backend, ["a", "", " \n\t\u3000", "bb"]) == RerankOutcome(
        (1.0, None, None, 2.0), True
    )
    assert backend.batches == [["a", "bb"]]


def test_nothing_to_score_is_not_sent() -> None:
    backend = Backend(by_length)
    assert run(backend, ["", " "]) == RerankOutcome(
        (None, None), reason="no row has a text to score"
    )
    assert run(backend, []) == RerankOutcome(())
    assert backend.batches == []


def test_equal_texts_are_sent_once_and_keep_their_rows() -> None:
    backend = Backend(by_length)
    assert run(backend, ["aa", "b", "aa", " aa "]).scores == (2.0, 1.0, 2.0, 2.0)
    assert backend.batches == [["aa", "b"]]


def test_long_texts_and_queries_are_cut(settings: Settings) -> None:
    settings.SEARCH_RERANK_MAX_CHARS = 5
    backend = Backend(by_length)
    assert run(backend, ["abcdefgh", "abcdexyz"]).scores == (5.0, 5.0)
    assert backend.batches == [["abcde"]]
    assert backend.queries == ["quest"]


def test_batches_merge_in_the_order_of_the_rows(settings: Settings) -> None:
    settings.SEARCH_RERANK_BATCH = 3
    backend = Backend(by_length)
    texts = ["x" * n for n in (4, 9, 1, 7, 3, 8, 2)]
    assert run(backend, texts).scores == (4.0, 9.0, 1.0, 7.0, 3.0, 8.0, 2.0)
    assert sorted(map(len, backend.batches)) == [1, 3, 3]


@pytest.mark.parametrize(
    "bad", [None, float("nan"), float("inf"), -float("inf"), "0.9", True, [], 10**400]
)
def test_what_is_not_a_finite_number_leaves_its_row_unscored(
    bad: object, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = run(Backend(lambda *_: [0.5, bad, 0.25]), ["a", "b", "c"])
    assert outcome == RerankOutcome((0.5, None, 0.25), True, "only 2 of 3 rows were scored")
    assert "left 1 of 3 texts unscored" in caplog.text


@pytest.mark.parametrize("scores", [[], [0.1], [0.1] * 4])
def test_a_wrong_number_of_scores_counts_as_none(scores: list[float]) -> None:
    outcome = run(Backend(lambda *_: scores), ["a", "b", "c"])
    assert outcome == RerankOutcome(
        (None,) * 3, reason=f"the reranker gave {len(scores)} scores for 3 texts"
    )


def test_a_backend_that_scores_nothing_did_not_apply() -> None:
    outcome = run(Backend(lambda *_: [None, None]), ["a", "b"])
    assert outcome == RerankOutcome(
        (None, None), reason="the reranker answered without a usable score"
    )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RerankError("the reranker is on holiday"), "the reranker is on holiday"),
        (RerankError(), "the reranker gave no scores"),
        (RuntimeError("password=hunter2"), "the reranker failed (RuntimeError)"),
    ],
)
def test_an_error_of_the_backend_is_a_reason_without_its_secrets(
    error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise error

    assert run(Backend(fail), ["a"]) == RerankOutcome((None,), reason=reason)
    assert "hunter2" not in caplog.text


def test_a_backend_that_hangs_costs_the_budget_and_no_more(
    settings: Settings, release: threading.Event
) -> None:
    settings.SEARCH_RERANK_BUDGET_MS = QUICK_MS
    start = time.monotonic()
    outcome = run(Backend(lambda *_: release.wait(20)), ["a", "b"])
    assert time.monotonic() - start < 20 * QUICK_MS / 1000
    assert outcome == RerankOutcome(
        (None, None), reason=f"the reranker did not answer within {QUICK_MS} ms"
    )


def test_batches_that_are_done_in_time_count(settings: Settings, release: threading.Event) -> None:
    settings.SEARCH_RERANK_BUDGET_MS = QUICK_MS
    settings.SEARCH_RERANK_BATCH = 2

    def hang_at_c(query: str, texts: list[str]) -> Any:
        return release.wait(20) if "c" in texts else by_length(query, texts)

    circuit = Circuit()
    outcome = run(Backend(hang_at_c), ["a", "bb", "c", "dd", "eeeee"], circuit)
    assert outcome.scores == (1.0, 2.0, None, None, 5.0)
    assert outcome.applied
    assert outcome.reason == (
        f"only 3 of 5 rows were scored: the reranker did not answer within {QUICK_MS} ms"
    )
    assert circuit.refusal(cooldown_s=30) is None


def test_a_failed_backend_is_skipped_until_a_probe_succeeds(
    settings: Settings,
) -> None:
    now = [0.0]
    circuit = Circuit(clock=lambda: now[0])
    working = [False]

    def sometimes(query: str, texts: list[str]) -> list[float]:
        if not working[0]:
            raise RerankError("the reranker is on holiday")
        return by_length(query, texts)

    backend = Backend(sometimes)
    assert run(backend, ["a"], circuit).reason == "the reranker is on holiday"
    skipped = run(backend, ["a"], circuit)
    assert skipped.reason == (
        "the reranker is skipped for another 30 s after a failure: the reranker is on holiday"
    )
    assert len(backend.batches) == 1
    now[0] += 30
    working[0] = True
    assert run(backend, ["a"], circuit) == RerankOutcome((1.0,), True)
    assert run(backend, ["a"], circuit).applied


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["", " ", "a", "b", "cc", "ddd"]), max_size=12),
    st.lists(st.sampled_from([0.5, -1.0, None, float("nan"), "x"]), min_size=5, max_size=5),
)
def test_every_row_has_one_place_whatever_comes_back(texts: list[str], values: list[Any]) -> None:
    outcome = run(Backend(lambda _, sent: values[: len(sent)]), texts)
    assert len(outcome.scores) == len(texts)
    assert outcome.applied == any(score is not None for score in outcome.scores)
    wanted = [score for text, score in zip(texts, outcome.scores, strict=True) if text.strip()]
    assert (outcome.reason is None) == (None not in wanted and (bool(wanted) or not texts))
    assert sorted(module.apply(range(len(texts)), outcome.scores)) == list(range(len(texts)))


# --- By the settings -----------------------------------------------------------------------------


def test_without_a_reranker_it_says_so(settings: Settings) -> None:
    settings.SEARCH_RERANKER = ""
    assert rerank_configured("q", ["a"]) == RerankOutcome((None,), reason=NOT_CONFIGURED)


def test_a_backend_is_named_by_its_dotted_path(settings: Settings) -> None:
    settings.SEARCH_RERANKER = f"{__name__}.ConfiguredBackend"
    assert rerank_configured("q", ["a"]) == RerankOutcome((1.0,), True)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere.At", "SEARCH_RERANKER names 'nowhere.At', which cannot be imported"),
        (f"{__name__}.BrokenFactory", "the reranker failed (RuntimeError)"),
    ],
)
def test_a_backend_that_cannot_be_made_is_a_reason(
    path: str, reason: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.SEARCH_RERANKER = path
    assert rerank_configured("q", ["a"]) == RerankOutcome((None,), reason=reason)
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("path", module.SHORT_NAMES.values())
def test_short_names_lead_to_backends_that_can_be_made(path: str) -> None:
    assert callable(module.load(path, "any").score)
