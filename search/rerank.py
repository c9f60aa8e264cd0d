"""Reranking: the protocol, and the stage that gets scores out of a backend without trusting it.

A backend is named by the setting SEARCH_RERANKER. The stage never raises and never loses a row:
whatever happens in a backend, each row keeps its place in the answer, scored or not, and the
outcome says what happened.
"""

import logging
import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast

from django.utils.module_loading import import_string

from search import conf
from search.circuit import Circuit
from search.errors import SearchError

logger = logging.getLogger(__name__)

NOT_CONFIGURED: Final = "no reranker is configured"
SHORT_NAMES: Final = {
    "http": "search.rerank_http.HttpReranker",
    "cross_encoder": "search.rerank_cross_encoder.CrossEncoderReranker",
}
# A search sends two batches. More threads than this would only wait for the same backend.
_THREADS: Final = 8

T = TypeVar("T")
Score = float | None


class RerankError(SearchError):
    """the reranker gave no scores"""

    # Messages are clauses without a full stop: they stand behind "rerank:" in an answer.


class Reranker(Protocol):
    """Scores how well texts answer a query; larger is better, comparable within one call only.

    `score` returns one value a text, in their order, None for a text it could not score, and
    raises RerankError when it has none at all. It may be called from several threads. What takes
    long, such as reading a model, belongs in `score`: only there the time limit holds.
    """

    @property
    def name(self) -> str:
        """What the backend is called in logs."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[Score]:
        """Return a score or None for each of `texts`."""


@dataclass(frozen=True, slots=True)
class RerankOutcome:
    """What the stage did: a score or None for each text, in the order the texts were given.

    `applied` is true if at least one score came back; `reason` says why not every text that has
    words was scored, and is None if each was.
    """

    scores: tuple[Score, ...]
    applied: bool = False
    reason: str | None = None


def apply(order: Sequence[T], scores: Sequence[Score]) -> list[T]:
    """Return `order` with the scored items first, best first, then the others as they were.

    Equal scores keep their order. Every item comes back once. Raises ValueError if the lengths
    differ.
    """
    pairs = list(zip(order, scores, strict=True))
    scored = [(item, score) for item, score in pairs if score is not None]
    scored.sort(key=lambda pair: -pair[1])  # stable
    return [item for item, _ in scored] + [item for item, score in pairs if score is None]


def rerank_configured(query: str, texts: Sequence[str]) -> RerankOutcome:
    """Score `texts` with the backend that the settings name; never raises."""
    path = conf.get("SEARCH_RERANKER")
    if not path:
        return _unscored(texts, NOT_CONFIGURED)
    circuit = _circuit(path, conf.get("SEARCH_RERANK_URL"), conf.get("SEARCH_RERANK_MODEL"))
    try:
        backend = load(path, conf.get("SEARCH_RERANK_MODEL"))
    except Exception as error:  # a backend is somebody else's code
        logger.warning("Reranker %s could not be loaded: %s", path, _describe(error))
        return _unscored(texts, _describe(error))
    return rerank(query, texts, reranker=backend, circuit=circuit)


def rerank(
    query: str, texts: Sequence[str], *, reranker: Reranker, circuit: Circuit
) -> RerankOutcome:
    """Score `texts` with `reranker`, within SEARCH_RERANK_BUDGET_MS; never raises.

    Texts without a word are not sent, long ones are cut to SEARCH_RERANK_MAX_CHARS characters, and
    equal ones are sent once and get the same score. Batches that are done when time runs out
    count. `circuit` is opened if no score came back at all, and closed if one did.
    """
    cut = [_cut(text) for text in texts]
    unique = list(dict.fromkeys(text for text in cut if text))
    if not unique:
        return _unscored(texts, "no row has a text to score" if texts else None)
    cooldown_s = conf.get("SEARCH_RERANK_COOLDOWN_S")
    if refusal := circuit.refusal(cooldown_s=cooldown_s):
        return _unscored(texts, f"the reranker is {refusal}")
    by_text, problem = _gather(reranker, _cut(query), unique)
    scores = tuple(by_text.get(text) for text in cut)
    scored = sum(score is not None for score in scores)
    wanted = sum(bool(text) for text in cut)
    if not scored:
        reason = problem or "the reranker answered without a usable score"
        circuit.failed(reason, cooldown_s=cooldown_s)
        logger.warning("Reranker %s is left alone for %g s: %s", reranker.name, cooldown_s, reason)
        return _unscored(texts, reason)
    circuit.succeeded()
    if scored == wanted:
        return RerankOutcome(scores, applied=True)
    part = f"only {scored} of {wanted} rows were scored"
    return RerankOutcome(scores, applied=True, reason=f"{part}: {problem}" if problem else part)


@cache
def load(path: str, model: str = "") -> Reranker:
    """Return the backend of a dotted path or short name, one instance a process and model.

    Raises RerankError, also when the backend cannot be made.
    """
    del model  # part of the key only: another model is another instance
    try:
        factory: Any = import_string(SHORT_NAMES.get(path, path))
    except ImportError as error:
        raise RerankError(f"SEARCH_RERANKER names {path!r}, which cannot be imported") from error
    return cast(Reranker, factory())


@cache
def _circuit(*_backend: str) -> Circuit:
    return Circuit()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="rerank")


def _gather(
    reranker: Reranker, query: str, texts: Sequence[str]
) -> tuple[dict[str, float], str | None]:
    """Return the scores that came back in time by text, and what went wrong, if anything did.

    The calling thread waits for the budget and no longer, even if a backend never returns; its
    thread then stays in the pool until it does.
    """
    milliseconds = conf.get("SEARCH_RERANK_BUDGET_MS")
    deadline = time.monotonic() + milliseconds / 1000
    size = max(1, conf.get("SEARCH_RERANK_BATCH"))
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]
    futures = [_pool().submit(_score, reranker, query, batch) for batch in batches]
    wait(futures, timeout=deadline - time.monotonic())
    scores: dict[str, float] = {}
    problems: list[str] = []
    for batch, future in zip(batches, futures, strict=True):
        future.cancel()
        if not future.done() or future.cancelled():
            problems.append(f"the reranker did not answer within {milliseconds} ms")
        elif error := future.exception():
            logger.debug("Reranker %s failed", reranker.name, exc_info=error)
            problems.append(_describe(error))
        else:
            scores |= _finite(reranker.name, batch, future)
    return scores, problems[0] if problems else None


def _score(reranker: Reranker, query: str, texts: Sequence[str]) -> list[Any]:
    scores = list(reranker.score(query, texts))
    if len(scores) != len(texts):  # no telling which score belongs to which text
        raise RerankError(f"the reranker gave {len(scores)} scores for {len(texts)} texts")
    return scores


def _finite(name: str, texts: Iterable[str], future: Future[list[Any]]) -> dict[str, float]:
    """Return the scores that are finite numbers, and log how many are not."""
    scores = {text: as_score(value) for text, value in zip(texts, future.result(), strict=True)}
    usable = {text: score for text, score in scores.items() if score is not None}
    if missing := len(scores) - len(usable):
        logger.warning("Reranker %s left %d of %d texts unscored", name, missing, len(scores))
    return usable


def as_score(value: object) -> Score:
    """Return `value` as a float if it is a finite number, else None; text is not a number."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    try:
        score = float(cast(Any, value))  # also a NumPy scalar
    except (TypeError, ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


def _cut(text: str) -> str:
    """Return the head of `text`, without white space around it."""
    return text.strip()[: conf.get("SEARCH_RERANK_MAX_CHARS")].rstrip()


def _describe(error: BaseException) -> str:
    """Return a line for the answer, without the text of foreign errors: it may hold secrets."""
    if isinstance(error, RerankError):
        return str(error)
    return f"the reranker failed ({type(error).__name__})"


def _unscored(texts: Sequence[str], reason: str | None) -> RerankOutcome:
    return RerankOutcome((None,) * len(texts), reason=reason)
