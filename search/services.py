"""The search: the only module that knows the order of the stages.

embed ∥ rank → fuse → (rerank) → sort by time → collapse → deepen → trim → hydrate → (graph) →
(content). A blank query is a scan: scan.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from search import backend, conf, content, embedding, graph, rerank, rows, scan, unmatched
from search.deepening import Fetch, Pool, gather, sorted_by_time, with_scores
from search.entities import collapse, distinct, key_of
from search.errors import RankerUnavailable
from search.fetchers import fetchers
from search.graph import Expansion
from search.normalise import NORMALISER_VERSION
from search.presentation import hydrate
from search.reading import index_snapshot
from search.run import Run
from search.state import read_state
from search.types import (
    MAX_TOP_K,
    Hit,
    PlacedRow,
    RankedRow,
    ScanResult,
    SearchRequest,
    SearchResult,
    StageTrace,
    UnmatchedFilter,
)

# The rankers of each fusion, in the order they are called: the lexical ones run while the query
# is being embedded.
RANKERS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "rrf": ("sparse", "title", "dense"),
    "dense_only": ("dense",),
    "sparse_only": ("sparse", "title"),
}
_TIME_COLUMN: Final = {"updated_desc": "updated_at", "created_desc": "created_at"}


def answer(*, request: SearchRequest) -> SearchResult | ScanResult:
    """Answer a search or, where the query is blank, a scan. Raises what they raise."""
    return scan.scan(request=request) if request.is_scan else search(request=request)


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
    with index_snapshot() as cursor:
        run = Run(request, cursor, read_state(cursor, request.filters))
        backend.check(run.state.bm25_files)
        _check_versions(run)
        with run.timed("total"):
            by_ranker = fetchers(run, names, vector)
            pool = _gather(run, by_ranker)
            _require_an_answer(run, pool, by_ranker)
            ordered = _final_order(run, pool)
            with run.timed("collapse"):
                entities = collapse(ordered)
            with run.timed("hydrate"):
                hits = hydrate(request, entities[: request.top_k])
            shown = _expand(run, hits)
            missing = _unmatched(run) if not pool.rows else ()
    shown = _with_content(run, shown)
    reason = _incomplete_reason(run, pool, len(entities))
    return SearchResult(
        request=request,
        hits=shown.hits,
        neighbours=shown.neighbours,
        trace=_trace(run, pool, ordered, len(entities)),
        complete=reason is None,
        incomplete_reason=reason,
        degraded=run.degradations(),
        filters_unmatched=missing,
        rerank_applied=run.rerank_applied,
    )


def _require_an_answer(run: Run, pool: Pool, by_ranker: Mapping[str, Fetch]) -> None:
    """Raise RankerUnavailable when every ranker failed: nothing found is another thing.

    That no title matched says nothing about contents, so titles do not count here.
    """
    needed = set(by_ranker) - {"title"}
    if pool.rows or not needed or not needed <= run.failed:
        return
    reasons = "; ".join(f"{stage}: {reason}" for stage, reason in run.degraded.items())
    raise RankerUnavailable(f"No ranker of this search could run. {reasons}")


def _rankers_for(request: SearchRequest) -> tuple[str, ...]:
    names = RANKERS_OF[request.fusion]
    return names if conf.get("SEARCH_TITLE_RANKER") else tuple(n for n in names if n != "title")


def _unmatched(run: Run) -> tuple[UnmatchedFilter, ...]:
    """Explain an empty pool; that this takes too long costs the explanation alone."""
    return run.guarded("filters", lambda: unmatched.explain(run.cursor, run.request.filters)) or ()


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


def _gather(run: Run, by_ranker: Mapping[str, Fetch]) -> Pool:
    """Fetch windows until there are enough entities: `top_k`, or for a time sort all 50.

    A time sort is right only over a pool that does not depend on `top_k`.
    """
    by_time = run.request.sort in _TIME_COLUMN
    return gather(
        by_ranker,
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


def _expand(run: Run, hits: tuple[Hit, ...]) -> Expansion:
    """Add the neighbours of the results, if asked; without them the results stay as they are."""
    if not run.request.graph_expand:
        return Expansion(hits)
    with run.timed("graph"):
        expansion = run.guarded("graph", lambda: graph.expand(run.cursor, hits, run.request))
    return expansion or Expansion(hits)


def _with_content(run: Run, expansion: Expansion) -> Expansion:
    """Add the text of the first documents, if asked; the index is not held meanwhile."""
    if not run.request.include_content:
        return expansion
    with run.timed("content"):
        texts = content.read(expansion.shown, run.degrade)
    return replace(
        expansion,
        hits=content.attach(expansion.hits, texts),
        neighbours=content.attach(expansion.neighbours, texts),
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


def bare_scans(*, request: SearchRequest) -> dict[str, float]:
    """Run each ranker's first window and nothing else; return the milliseconds of each.

    For the benchmark: what the search would cost if it were one scan.
    """
    names = RANKERS_OF["rrf"]
    vector = embedding.submit_query(request.query)
    embedding.wait(vector)
    with index_snapshot() as cursor:
        run = Run(request, cursor, read_state(cursor, request.filters))
        backend.check(run.state.bm25_files)
        for fetch in fetchers(run, names, vector).values():
            fetch([], conf.get("SEARCH_WINDOW"))
    return {name: run.timings_ms[name] for name in names if name in run.timings_ms}
