"""The slow and obvious search: sort all rows in Python, window by window, and collapse.

It knows nothing of SQL, indexes or early stops. A "world" is a list of rows with, for each ranker,
a score or None; the oracle ranks all of them, cuts windows, fuses, collapses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from search.types import Candidate

RankerScores = Mapping[str, float | None]


@dataclass(frozen=True)
class WorldRow:
    """A row and what each ranker would give it; None where the ranker does not hold it."""

    candidate: Candidate
    scores: RankerScores


def slow_key(row: WorldRow) -> str:
    """The definition of docs/entities.md, spelled out as a list of cases."""
    c = row.candidate
    if c.type == "doc" and c.doc_path:
        return "file:" + c.repo + ":" + c.doc_path
    if c.type == "diff" and c.file_path:
        return "file:" + c.repo + ":" + c.file_path
    if c.type == "issue" and c.number:
        return "thread:" + c.repo + ":" + str(c.number)
    if c.type == "pull_request" and c.number:
        return "thread:" + c.repo + ":" + str(c.number)
    if c.type in {"issue_comment", "pr_review", "pr_review_comment"} and c.number:
        return "thread:" + c.repo + ":" + str(c.number)
    return "row:" + c.vector_id


def slow_ranking(world: Sequence[WorldRow], ranker: str, seen: set[str]) -> list[str]:
    """Ids of all rows that a ranker holds, best first, ties by id, without seen entities."""
    held = [
        (-score, row.candidate.vector_id)
        for row in world
        if (score := row.scores.get(ranker)) is not None and slow_key(row) not in seen
    ]
    return [vector_id for _, vector_id in sorted(held)]


def slow_search(
    world: Sequence[WorldRow], rankers: Sequence[str], *, top_k: int, window: int
) -> list[tuple[str, list[str]]]:
    """Return (entity key, ids of its rows in final order) for the first `top_k` entities."""
    by_id = {row.candidate.vector_id: row for row in world}
    brought = dict.fromkeys(rankers, 0)
    live = list(rankers)
    entities: dict[str, list[str]] = {}
    while live and len(entities) < top_k:
        heads = {name: slow_ranking(world, name, set(entities))[:window] for name in live}
        score: dict[str, float] = {}
        for name in sorted(live, key=["dense", "sparse", "title"].index):
            for place, vector_id in enumerate(heads[name]):
                rank = brought[name] + place + 1
                score[vector_id] = score.get(vector_id, 0.0) + 1 / (60 + rank)
        first_seen = list(score)
        for vector_id in sorted(score, key=lambda i: (-score[i], first_seen.index(i))):
            entities.setdefault(slow_key(by_id[vector_id]), []).append(vector_id)
        for name in list(live):
            brought[name] += len(heads[name])
            if len(heads[name]) < window:
                live.remove(name)
    return list(entities.items())[:top_k]


def fetcher(
    world: Sequence[WorldRow], ranker: str
) -> Callable[[Sequence[str], int], list[Candidate]]:
    """A fetch function for `deepening.gather` over a world."""
    from dataclasses import replace

    by_id = {row.candidate.vector_id: row for row in world}

    def fetch(seen: Sequence[str], limit: int) -> list[Candidate]:
        ids = slow_ranking(world, ranker, set(seen))[:limit]
        return [replace(by_id[i].candidate, score=by_id[i].scores[ranker] or 0.0) for i in ids]

    return fetch
