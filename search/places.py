"""Places of rows and entities in the pool of a search (pure)."""

from collections.abc import Sequence

from search.types import RankedRow, SearchResult


def fused_places(pool: Sequence[RankedRow]) -> dict[str, int]:
    """Return the place of each pool row, from 1, as it was before reranking and sorting.

    Windows follow each other; within one, higher scores first, and ties as first seen in the
    order of the dense ranker, then of sparse, then of title.
    """
    unseen = 2**63

    def order(row: RankedRow) -> tuple[int, float, int, int, int]:
        dense, sparse, title = (row.ranks.get(n, unseen) for n in ("dense", "sparse", "title"))
        return row.window, -row.score, dense, sparse, title

    return {row.vector_id: place for place, row in enumerate(sorted(pool, key=order), 1)}


def entity_places(result: SearchResult) -> dict[str, int]:
    """Return the place of each entity of the pool, from 1."""
    keys = dict.fromkeys(placed.entity_key for placed in result.trace.pool)
    return {key: place for place, key in enumerate(keys, 1)}
