"""Why is it (not) here: what became of a row or an entity in one search.

Asks the index what the search itself need not know: whether it holds the thing, which filters
exclude it, and its exact place in each ranker beyond the windows that were fetched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.db.backends.utils import CursorWrapper

from search import backend, conf, embedding, filters, links, rows
from search.entities import ENTITY_KEY_SQL
from search.errors import EmbeddingError
from search.normalise import normalise
from search.places import entity_places, fused_places
from search.reading import index_snapshot
from search.run import Run
from search.standing import Place, Question, Standing, standing
from search.state import read_state
from search.targets import Target, readings
from search.types import RankedRow, Row, SearchResult

# Rows of a target that are explained one by one; of more, the best-placed.
MOST_ROWS: Final = 12

# Returns the newest rows of a target, those of the pool first: id, entity, whether each filter
# lets it pass, and the number of the target's rows.
_ROWS = """
SELECT vector_id, {key}, ARRAY[{passes}]::boolean[], count(*) OVER ()
  FROM search_docs WHERE {target}
 ORDER BY vector_id = ANY(%(pool)s) DESC, updated_at DESC NULLS LAST, vector_id LIMIT %(most)s
"""
# The same for given rows.
_THESE = """
SELECT vector_id, {key}, ARRAY[{passes}]::boolean[]
  FROM search_docs WHERE vector_id = ANY(%(ids)s)
"""

# Stage at which a row's way ended; also what the page calls it.
FILTERED: Final = "filtered"
UNRANKED: Final = "unranked"
BEYOND: Final = "beyond the window"
MISSED: Final = "missed by the index"
LEFT_OUT: Final = "left out"
BELOW: Final = "below top_k"
FOLDED: Final = "folded"
SHOWN: Final = "shown"


@dataclass(frozen=True, slots=True)
class RowStory:
    """What became of one row.

    `excluded_by` names filters; `places` are exact, by ranker. The places among the rows of the
    pool, from 1, are None outside it: `fused_place` before reranking and sorting, `final_place`
    after. `entity_place` counts entities.
    """

    row: Row
    title: str
    url: str
    entity_key: str
    stage: str
    excluded_by: tuple[str, ...]
    places: Mapping[str, Place]
    ranked: RankedRow | None = None
    fused_place: int | None = None
    final_place: int | None = None
    entity_place: int | None = None
    representative: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of a target: `meaning` says how the text was understood, None if not at all.

    `rows` is the number of its rows in the index, of which `stories` tells the best-placed.
    `uncounted` says, by ranker, why places could not be counted.
    """

    text: str
    meaning: str | None
    rows: int
    stories: tuple[RowStory, ...]
    standings: tuple[Standing, ...]
    uncounted: Mapping[str, str]
    window: int

    @property
    def best(self) -> RowStory | None:
        """The row that came furthest."""
        return self.stories[0] if self.stories else None


@dataclass(frozen=True, slots=True)
class _Fact:
    """A row as the index has it for this question."""

    entity_key: str
    excluded_by: tuple[str, ...]


def why(*, result: SearchResult, text: str) -> Explanation:
    """Explain what became, in the search that gave `result`, of the thing that `text` names.

    `text` is a vector_id, an entity key, `owner/repo#12`, `owner/repo:path`, `owner/repo@sha` or
    an address on GitHub. Raises IndexUnavailable when the index cannot be read.
    """
    while True:  # ends: each turn closes one connection that saw an older index
        try:
            return _why(result, text)
        except backend.StaleConnection:
            backend.discard()


def _why(result: SearchResult, text: str) -> Explanation:
    with index_snapshot() as cursor:
        run = Run(result.request, cursor, read_state(cursor, result.request.filters))
        backend.check(run.state.bm25_files)
        target, facts, total = _resolve(cursor, result, text)
        standings: list[Standing] = []
        if target and facts:
            standings = _standings(run, result, target)
            placed = [vector_id for s in standings for vector_id in list(s.places)[:MOST_ROWS]]
            facts = facts | _facts_of(cursor, result, set(placed) - set(facts))
        stories = _stories(result, facts, standings)
    return Explanation(
        text=text,
        meaning=target.meaning if target else None,
        rows=total,
        stories=stories,
        standings=tuple(standings),
        uncounted=run.degraded,
        window=conf.get("SEARCH_WINDOW"),
    )


def _resolve(
    cursor: CursorWrapper, result: SearchResult, text: str
) -> tuple[Target | None, dict[str, _Fact], int]:
    """Return the first reading of `text` that the index holds rows of, or the likeliest."""
    targets = readings(text)
    names, statement = _statement(_ROWS, result)
    for target in targets:
        cursor.execute(
            statement.replace("{target}", target.condition),
            {
                **filters.active(result.request.filters),
                **target.values,
                "pool": [placed.ranked.vector_id for placed in result.trace.pool],
                "most": MOST_ROWS,
            },
        )
        found = cursor.fetchall()
        if found:
            facts = {id_: _Fact(key, _failed(names, passes)) for id_, key, passes, _ in found}
            return target, facts, found[0][3]
    return (targets[-1] if targets else None), {}, 0


def _facts_of(
    cursor: CursorWrapper, result: SearchResult, vector_ids: set[str]
) -> dict[str, _Fact]:
    if not vector_ids:
        return {}
    names, statement = _statement(_THESE, result)
    values = {**filters.active(result.request.filters), "ids": sorted(vector_ids)}
    cursor.execute(statement, values)
    return {id_: _Fact(key, _failed(names, passes)) for id_, key, passes in cursor.fetchall()}


def _statement(template: str, result: SearchResult) -> tuple[list[str], str]:
    """Return the names of the filters in use, and a statement that says which let a row pass."""
    names = list(filters.active(result.request.filters))
    # A row without a time passes no bound in time: null counts as no.
    passes = ", ".join(f"coalesce({filters.CONDITIONS[name]}, false)" for name in names)
    return names, template.format(key=ENTITY_KEY_SQL, passes=passes, target="{target}")


def _failed(names: Sequence[str], passes: Sequence[bool]) -> tuple[str, ...]:
    return tuple(name for name, passed in zip(names, passes, strict=True) if not passed)


def _standings(run: Run, result: SearchResult, target: Target) -> list[Standing]:
    """Count the target's places in each ranker that took part in the search."""
    request = result.request
    engines = {name: result.trace.engines.get(name, "") for name in result.trace.candidates}
    vector = None
    if "dense" in engines:
        try:
            vector = embedding.wait(embedding.submit_query(request.query))
        except EmbeddingError as error:
            run.degrade("dense", str(error))
            del engines["dense"]
    question = Question(
        state=run.state,
        wanted=request.filters,
        text=request.query,
        tokens=normalise(request.query),
        vector=vector,
        target=target,
    )
    found = []
    for name, engine in engines.items():
        count = partial(standing, run.cursor, question, ranker=name, engine=engine)
        counted = run.guarded(name, count)
        if counted is not None:
            found.append(counted)
    return found


def _stories(
    result: SearchResult, facts: Mapping[str, _Fact], standings: Sequence[Standing]
) -> tuple[RowStory, ...]:
    """Tell the story of each row, those that came furthest first; at most MOST_ROWS."""
    shown = rows.fetch(facts)
    fused = fused_places([placed.ranked for placed in result.trace.pool])
    pool = {p.ranked.vector_id: (n, p.ranked) for n, p in enumerate(result.trace.pool, 1)}
    entities = entity_places(result)
    leaders = _representatives(result)
    stories = []
    for vector_id, fact in facts.items():
        places = {s.ranker: s.places[vector_id] for s in standings if vector_id in s.places}
        final_place, ranked = pool.get(vector_id, (None, None))
        entity_place = entities.get(fact.entity_key)
        leader = leaders.get(fact.entity_key)
        stories.append(
            RowStory(
                row=shown[vector_id],
                title=links.title(shown[vector_id]),
                url=links.url(shown[vector_id]),
                entity_key=fact.entity_key,
                stage=_stage(result, fact, vector_id, places, ranked, entity_place, leader),
                excluded_by=fact.excluded_by,
                places=places,
                ranked=ranked,
                fused_place=fused.get(vector_id),
                final_place=final_place,
                entity_place=entity_place,
                representative=leader,
            )
        )
    return tuple(sorted(stories, key=_furthest)[:MOST_ROWS])


def _stage(
    result: SearchResult,
    fact: _Fact,
    vector_id: str,
    places: Mapping[str, Place],
    ranked: RankedRow | None,
    entity_place: int | None,
    leader: str | None,
) -> str:
    if fact.excluded_by:
        return FILTERED
    if ranked is not None:
        if entity_place is not None and entity_place > result.request.top_k:
            return BELOW
        return SHOWN if leader == vector_id else FOLDED
    if not places:
        return UNRANKED
    # A window of titles may hold fewer that cover the query: there a low place says nothing.
    ranks = [place.rank for ranker, place in places.items() if ranker != "title"]
    if min(ranks, default=conf.get("SEARCH_WINDOW") + 1) <= conf.get("SEARCH_WINDOW"):
        return MISSED
    return LEFT_OUT if entity_place is not None else BEYOND


def _furthest(story: RowStory) -> tuple[bool, int, int, str]:
    """Sort key: rows of the pool in final order, then by best place, then those never ranked."""
    last = 2**63
    best = min((place.rank for place in story.places.values()), default=last)
    return story.final_place is None, story.final_place or 0, best, story.row.vector_id


def _representatives(result: SearchResult) -> dict[str, str]:
    leaders: dict[str, str] = {}
    for placed in result.trace.pool:
        leaders.setdefault(placed.entity_key, placed.ranked.vector_id)
    return leaders
