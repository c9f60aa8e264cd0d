"""Fixed windows and deepening: how the pool is gathered until it holds enough entities (pure).

Each ranker is asked for one window at a time. The first window is fused and, if asked, reranked;
a later one leaves out the entities already found, counts ranks on, is fused by itself and
appended. So what was placed never moves: the answer for 10 is the head of the answer for 50.
The reasons are in docs/decisions/fixed-windows.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from search.entities import key_of
from search.fusion import reciprocal_rank_fusion
from search.types import RANKERS, Candidate, RankedRow

# Called with the keys of the entities to leave out and the number of rows wanted.
Fetch = Callable[[Sequence[str], int], list[Candidate]]


@dataclass(slots=True)
class Pool:
    """The rows that the rankers brought, in order, and how the gathering ended.

    `exhausted` is true when no ranker has a row of another entity.
    """

    rows: list[RankedRow] = field(default_factory=list)
    keys: dict[str, None] = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    windows: int = 0
    exhausted: bool = False


def gather(
    fetchers: Mapping[str, Fetch],
    *,
    window: int,
    enough: int,
    max_windows: int,
    reorder: Callable[[list[RankedRow]], list[RankedRow]] = list,
    timed: Callable[[Callable[[], list[RankedRow]]], list[RankedRow]] = lambda fuse: fuse(),
) -> Pool:
    """Fetch windows of `window` rows until the pool holds `enough` entities or all there are.

    `fetchers` maps ranker names to functions, called in the mapping's order; fusion breaks ties
    in the order dense, sparse, title whatever that is. `reorder` is applied to the first window
    after fusion (reranking) and must return the same rows. At most `max_windows` are fetched.
    """
    pool = Pool(candidates=dict.fromkeys(fetchers, 0))
    live = dict(fetchers)
    while live and len(pool.keys) < enough and pool.windows < max_windows:
        fetched = {name: fetch(list(pool.keys), window) for name, fetch in live.items()}
        rows = timed(lambda: _fuse(fetched, pool))  # noqa: B023 (called at once)
        if pool.windows == 0:
            rows = reorder(rows)
        pool.rows += rows
        pool.keys.update(dict.fromkeys(map(key_of, rows)))
        pool.windows += 1
        for name, candidates in fetched.items():
            pool.candidates[name] += len(candidates)
            if len(candidates) < window:
                del live[name]
    pool.exhausted = not live
    return pool


def _fuse(fetched: Mapping[str, list[Candidate]], pool: Pool) -> list[RankedRow]:
    """Fuse one window; ranks continue from the rows that each ranker has already brought."""
    ordered = {name: fetched[name] for name in RANKERS if name in fetched}
    found: dict[str, Candidate] = {}
    scores: dict[str, dict[str, float]] = {}
    for name, candidates in ordered.items():
        for candidate in candidates:
            found.setdefault(candidate.vector_id, candidate)
            scores.setdefault(candidate.vector_id, {})[name] = candidate.score
    fused = reciprocal_rank_fusion(
        {name: [c.vector_id for c in candidates] for name, candidates in ordered.items()},
        first_rank={name: pool.candidates[name] + 1 for name in ordered},
    )
    return [
        RankedRow(found[row.vector_id], row.score, row.ranks, scores[row.vector_id], pool.windows)
        for row in fused
    ]


def sorted_by_time(rows: Sequence[RankedRow], column: str) -> list[RankedRow]:
    """Sort by `updated_at` or `created_at`, newest first, keeping order among equals; null last."""
    dated = [row for row in rows if getattr(row.candidate, column) is not None]
    undated = [row for row in rows if getattr(row.candidate, column) is None]
    return sorted(dated, key=lambda row: getattr(row.candidate, column), reverse=True) + undated


def with_scores(rows: Sequence[RankedRow], scores: Sequence[float | None]) -> list[RankedRow]:
    """Attach rerank scores to the rows they belong to; lengths must be equal."""
    return [replace(row, rerank_score=score) for row, score in zip(rows, scores, strict=True)]
