"""The search: the only module that knows the order of the stages.

embed ∥ rank → fuse → (rerank) → sort by time → collapse → deepen → trim → hydrate.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Final

from django.db import DatabaseError, InterfaceError, ProgrammingError, connections, transaction
from django.db.backends.utils import CursorWrapper

from ingest_readonly.routers import INDEX
from search import backend, conf, core_text, embedding, links, rankers, rerank, rows, unmatched
from search.deepening import Fetch, Pool, gather, sorted_by_time, with_scores
from search.embedding import Vector
from search.entities import collapse, distinct, key_of
from search.errors import EmbeddingError, IndexUnavailable, RankerUnavailable
from search.normalise import NORMALISER_VERSION, normalise
from search.run import Run
from search.snippet import snippet
from search.state import read_state
from search.types import (
    MAX_TOP_K,
    Candidate,
    Entity,
    FoldedRow,
    Hit,
    PlacedRow,
    RankedRow,
    Row,
    SearchRequest,
    SearchResult,
    StageTrace,
)

# The rankers of each fusion, in the order they are called: the lexical ones run while the query
# is being embedded.
RANKERS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "rrf": ("sparse", "title", "dense"),
    "dense_only": ("dense",),
    "sparse_only": ("sparse", "title"),
}
_FIELD: Final = {"sparse": "content", "title": "title"}
_TIME_COLUMN: Final = {"updated_desc": "updated_at", "created_desc": "created_at"}


def search(*, request: SearchRequest) -> SearchResult:
    """Answer a search with at most `top_k` hits, each a distinct entity, best first.

    Everything is read in one read-only, repeatable-read transaction. A stage that cannot run is
    named in `degraded`, and the others answer.
    Raises IndexUnavailable when the index cannot be read, RankerUnavailable when the only ranker
    of the request cannot run.
    """
    while True:  # ends: each turn closes one connection that saw an older index
        try:
            return _search(request)
        except backend.StaleConnection:
            backend.discard()


def _search(request: SearchRequest) -> SearchResult:
    names = _rankers_for(request)
    vector = embedding.submit_query(request.query) if "dense" in names else None
    with _index_snapshot() as cursor:
        run = Run(request, cursor, read_state(cursor, request.filters))
        backend.check(run.state.bm25_files)
        _check_versions(run)
        with run.timed("total"):
            pool = _gather(run, _fetchers(run, names, vector))
            ordered = _final_order(run, pool)
            with run.timed("collapse"):
                entities = collapse(ordered)
            with run.timed("hydrate"):
                hits = _hydrate(request, entities[: request.top_k])
            missing = () if pool.rows else unmatched.explain(cursor, request.filters)
    reason = _incomplete_reason(run, pool, len(entities))
    return SearchResult(
        request=request,
        hits=hits,
        trace=_trace(run, pool, ordered, len(entities)),
        complete=reason is None,
        incomplete_reason=reason,
        degraded=run.degradations(),
        filters_unmatched=missing,
        rerank_applied=run.rerank_applied,
    )


@contextmanager
def _index_snapshot() -> Iterator[CursorWrapper]:
    """Open the transaction in which the whole search reads; raises IndexUnavailable."""
    try:
        with transaction.atomic(using=INDEX), connections[INDEX].cursor() as cursor:
            yield cursor
    except ProgrammingError as error:
        raise IndexUnavailable(
            "The index has no tables yet, or not those of the contract: run manage.py check."
        ) from error
    except (DatabaseError, InterfaceError) as error:
        raise IndexUnavailable from error


def _rankers_for(request: SearchRequest) -> tuple[str, ...]:
    names = RANKERS_OF[request.fusion]
    return names if conf.get("SEARCH_TITLE_RANKER") else tuple(n for n in names if n != "title")


def _check_versions(run: Run) -> None:
    """Note what the index was built with that differs from this process."""
    if run.state.normaliser_version != NORMALISER_VERSION:
        run.degrade(
            "normaliser",
            f"the index text was normalised by version {run.state.normaliser_version}, queries "
            f"by {NORMALISER_VERSION}: words may be missed until the index is loaded again",
        )
    refusal = run.state.bm25_refusal()
    if refusal and run.state.bm25_version and conf.get("SEARCH_LEXICAL_ENGINE") == "auto":
        run.degrade("bm25", f"{refusal}; PostgreSQL's full-text search answers instead")


def _fetchers(run: Run, names: tuple[str, ...], vector: Future[Vector] | None) -> dict[str, Fetch]:
    """Return a function for each ranker that fetches its next window, in calling order."""
    tokens = normalise(run.request.query)
    fetchers: dict[str, Fetch] = {}
    for name in names:
        if name == "dense" and vector is not None:
            fetchers[name] = partial(_fetch_dense, run, vector)
        elif tokens:
            fetchers[name] = partial(_fetch_lexical, run, name, tokens)
        elif name == "sparse":
            fetchers[name] = partial(_fetch_literal, run)
    return fetchers


def _fetch_dense(run: Run, future: Future[Vector], seen: list[str], limit: int) -> list[Candidate]:
    """Fetch a window of the dense ranker; without a vector it brings nothing and says so."""
    try:
        with run.timed("embed"):
            vector = embedding.wait(future)
        _check_model(run)
        with run.timed("dense"):
            found = run.guarded(
                "dense",
                lambda: rankers.dense(
                    run.cursor,
                    vector=vector,
                    state=run.state,
                    wanted=run.request.filters,
                    seen=seen,
                    limit=limit,
                ),
            )
    except EmbeddingError as error:
        run.degrade("dense", str(error))
        found = None
    if found is None and run.request.fusion == "dense_only" and not seen:
        raise RankerUnavailable(f"The dense ranker could not run: {run.degraded['dense']}")
    run.engines["dense"] = "exact" if run.state.exact else "hnsw"
    return found or []


def _check_model(run: Run) -> None:
    model = embedding.embedder().model
    if model != run.state.embedding_model:
        raise EmbeddingError(
            f"Queries are embedded by {model}, the index by {run.state.embedding_model}: their "
            "vectors cannot be compared."
        )


def _fetch_lexical(
    run: Run, name: str, tokens: str, seen: list[str], limit: int
) -> list[Candidate]:
    """Fetch a window by BM25 where it can be trusted, else by PostgreSQL's full-text search."""
    arguments = {
        "field": _FIELD[name],
        "query": tokens,
        "state": run.state,
        "wanted": run.request.filters,
        "seen": seen,
        "limit": limit,
    }
    engine = run.engines.get(name) or _engine(run)
    with run.timed(name):
        found: list[Candidate] | None = None
        if engine == "bm25":
            found = run.guarded("bm25", lambda: rankers.bm25(run.cursor, **arguments))
            engine = engine if found is not None else "core"
        if engine == "core":
            found = run.guarded(name, lambda: core_text.core(run.cursor, **arguments))
    run.engines[name] = engine
    return found or []


def _engine(run: Run) -> str:
    wanted = conf.get("SEARCH_LEXICAL_ENGINE")
    return "core" if wanted == "core" or run.state.bm25_refusal() else "bm25"


def _fetch_literal(run: Run, seen: list[str], limit: int) -> list[Candidate]:
    """Fetch rows that hold a query without any word, such as `(`, as it stands."""
    run.engines["sparse"] = "literal"
    with run.timed("sparse"):
        found = run.guarded(
            "sparse",
            lambda: rankers.literal(
                run.cursor,
                query=run.request.query.strip(),
                wanted=run.request.filters,
                seen=seen,
                limit=limit,
            ),
        )
    return found or []


def _gather(run: Run, fetchers: Mapping[str, Fetch]) -> Pool:
    """Fetch windows until there are enough entities: `top_k`, or for a time sort all 50.

    A time sort is right only over a pool that does not depend on `top_k`.
    """
    by_time = run.request.sort in _TIME_COLUMN
    return gather(
        fetchers,
        window=conf.get("SEARCH_WINDOW"),
        enough=MAX_TOP_K if by_time else run.request.top_k,
        max_windows=conf.get("SEARCH_MAX_WINDOWS"),
        reorder=partial(_rerank, run),
        timed=partial(_timed_fusion, run),
    )


def _rerank(run: Run, fused: list[RankedRow]) -> list[RankedRow]:
    """Rerank the best rows of the first window; the others follow in fused order.

    Without a reranker, or when it fails, the order stays as it is and the run says why.
    """
    run.rerank_reason = _no_rerank(run.request)
    if run.rerank_reason is not None:
        return fused
    depth = conf.get("SEARCH_RERANK_DEPTH")
    best, rest = fused[:depth], fused[depth:]
    with run.timed("rerank"):
        best_ids = [row.vector_id for row in best]
        found = rows.fetch(best_ids, with_content=best_ids)
        texts = [found[vector_id].content or "" for vector_id in best_ids]
        outcome = rerank.rerank_configured(run.request.query, texts)
    run.rerank_applied, run.rerank_reason = outcome.applied, outcome.reason
    if outcome.reason:
        run.degrade("rerank", outcome.reason)
    return rerank.apply(with_scores(best, outcome.scores), outcome.scores) + rest


def _no_rerank(request: SearchRequest) -> str | None:
    """Say why this search is not reranked at all; None when it is to be."""
    if not request.rerank:
        return "not asked for"
    if request.sort in _TIME_COLUMN:
        return "the results are sorted by time"
    if not conf.get("SEARCH_RERANKER"):
        return "no reranker is configured"
    return None


def _timed_fusion(run: Run, fuse: Callable[[], list[RankedRow]]) -> list[RankedRow]:
    with run.timed("fuse"):
        return fuse()


def _final_order(run: Run, pool: Pool) -> list[RankedRow]:
    column = _TIME_COLUMN.get(run.request.sort)
    return pool.rows if column is None else sorted_by_time(pool.rows, column)


def _hydrate(request: SearchRequest, entities: list[Entity]) -> tuple[Hit, ...]:
    """Read what is shown of the entities. One statement."""
    shown = [row.vector_id for e in entities for row in (e.representative, *e.others)]
    found = rows.fetch(shown, with_content=[e.representative.vector_id for e in entities])
    return tuple(_hit(request, entity, found) for entity in entities)


def _hit(request: SearchRequest, entity: Entity, found: Mapping[str, Row]) -> Hit:
    row = found[entity.representative.vector_id]
    others = [(ranked, found[ranked.vector_id]) for ranked in entity.others]
    return Hit(
        entity_key=entity.key,
        ranked=entity.representative,
        row=row,
        title=links.title(row),
        url=links.url(row),
        snippet=snippet(row.content or "", request.query),
        others=tuple(
            FoldedRow(ranked, other, links.title(other), links.url(other))
            for ranked, other in others
        ),
    )


def _trace(run: Run, pool: Pool, ordered: list[RankedRow], entities: int) -> StageTrace:
    return StageTrace(
        candidates=pool.candidates,
        pool=tuple(PlacedRow(row, key_of(row)) for row in ordered),
        pool_entities=entities,
        slot_entities=distinct(ordered[: run.request.top_k]),
        windows=pool.windows,
        engines=run.engines,
        timings_ms=run.timings_ms,
        rerank_reason=run.rerank_reason,
    )


def _incomplete_reason(run: Run, pool: Pool, entities: int) -> str | None:
    """Say why fewer than `top_k` entities came though more may exist; None when all is well."""
    if entities >= run.request.top_k:
        return None
    failed = [stage for stage in ("dense", "sparse", "title") if stage in run.degraded]
    if failed:
        return f"the {failed[0]} ranker could not run: {run.degraded[failed[0]]}"
    if not pool.exhausted:
        return f"stopped after {pool.windows} windows of {conf.get('SEARCH_WINDOW')} rows a ranker"
    return None
