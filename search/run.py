"""What one search carries through its stages: the request, clocks, and what went wrong."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connections, transaction
from django.db.backends.utils import CursorWrapper

from ingest_readonly.routers import INDEX
from search import conf
from search.errors import IndexUnavailable
from search.state import IndexState
from search.types import Degradation, SearchRequest

T = TypeVar("T")


@dataclass(slots=True)
class Run:
    """One search under way."""

    request: SearchRequest
    cursor: CursorWrapper
    state: IndexState
    degraded: dict[str, str] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)
    timings_ms: dict[str, float] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)  # rankers that brought nothing, for a fault
    rerank_applied: bool = False
    rerank_reason: str | None = None

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        with timed(self.timings_ms, stage):
            yield

    def degrade(self, stage: str, reason: str) -> None:
        """Note that a stage could not run as asked; the first reason stands."""
        self.degraded.setdefault(stage, reason)

    def guarded(self, stage: str, read: Callable[[], T]) -> T | None:
        """Run one stage behind a savepoint; a database error costs this stage alone.

        Returns None, with the stage noted as degraded, where the statement failed or ran too long.
        """
        try:
            with transaction.atomic(using=INDEX):
                return read()
        except (DatabaseError, InterfaceError) as error:
            connection = connections[INDEX].connection
            if connection is None or connection.closed:  # not this statement: the server is gone
                raise IndexUnavailable from error
            self.degrade(stage, _reason(error))
        return None

    def degradations(self) -> tuple[Degradation, ...]:
        return tuple(Degradation(stage, reason) for stage, reason in self.degraded.items())


@contextmanager
def timed(timings_ms: dict[str, float], stage: str) -> Iterator[None]:
    """Add the time of the block to a stage of `timings_ms`."""
    started = time.perf_counter()
    try:
        yield
    finally:
        elapsed = (time.perf_counter() - started) * 1000
        timings_ms[stage] = timings_ms.get(stage, 0.0) + elapsed


def _reason(error: Exception) -> str:
    """Say in one line what the database said; never the statement or its values."""
    if getattr(error.__cause__, "sqlstate", "") == "57014":  # query_canceled
        return f"stopped after {conf.get('SEARCH_STATEMENT_TIMEOUT_MS')} ms"
    return str(error).strip().partition("\n")[0] or type(error).__name__
