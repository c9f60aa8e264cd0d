"""Reciprocal rank fusion of ranked lists (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
# Rank Learning Methods", SIGIR 2009, where k = 60 was fixed in a pilot and kept.
RRF_K: Final = 60


@dataclass(frozen=True, slots=True)
class FusedRow:
    """An id with its fused score and its 1-based rank in each list that holds it."""

    vector_id: str
    score: float
    ranks: Mapping[str, int]


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[str]],
    *,
    first_rank: Mapping[str, int] | None = None,
    k: int = RRF_K,
) -> list[FusedRow]:
    """Fuse ranked lists of ids: score = sum of 1 / (k + rank) over the lists that hold the id.

    `rankings` maps a ranker's name to its ids, best first, no id twice in one list; the order of
    the mapping decides ties: first seen in the first list, then in the second, and so on.
    `first_rank` is the rank of each list's head (1 unless the list continues an earlier window).
    Returns every id once, best first. O(n log n) in the total number of ids.
    """
    ranks: dict[str, dict[str, int]] = {}
    for ranker, ids in rankings.items():
        start = (first_rank or {}).get(ranker, 1)
        for rank, vector_id in enumerate(ids, start):
            ranks.setdefault(vector_id, {})[ranker] = rank
    fused = [
        FusedRow(vector_id, sum(1 / (k + rank) for rank in held.values()), held)
        for vector_id, held in ranks.items()
    ]
    return sorted(fused, key=lambda row: -row.score)  # stable: ties keep first-seen order
