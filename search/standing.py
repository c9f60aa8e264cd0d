"""Where given rows stand in each ranker, counted exactly over every row that the filters leave.

The rankers stop at their window; these statements do not, so they cost up to seconds on a large
index. They are for a person who asks about one row, never for a search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.backends.utils import CursorWrapper

from search import conf, core_text, filters, rankers
from search.embedding import Vector
from search.state import IndexState
from search.targets import Target
from search.types import Filters

# A target of many rows, such as a thread of 20,000 comments, gives its best ones.
MOST_PLACES: Final = 200

# Returns the places of the target's rows, best first, and how many rows the ranker orders in all.
_PLACES = """
WITH ranked AS MATERIALIZED (
    SELECT vector_id, score, row_number() OVER ({order}) AS rank FROM ({statement}) AS ordered
)
SELECT vector_id, rank, score, (SELECT count(*) FROM ranked)
  FROM ranked
 WHERE vector_id IN (SELECT vector_id FROM search_docs WHERE {target})
 ORDER BY rank LIMIT %(most)s
"""
# Returns how many rows the ranker orders, where the target has none among them.
_COUNT = "SELECT count(*) FROM ({statement}) AS ordered"

# Returns the ids of the target's rows.
_OF_TARGET = "SELECT vector_id FROM search_docs WHERE {target}"

_FIELD: Final = {"sparse": "content", "title": "title"}
_BY_SCORE: Final = "ORDER BY score DESC, vector_id"
_AS_IT_COMES: Final = ""  # the statement sorts, by (score, id), at full precision


@dataclass(frozen=True, slots=True)
class Place:
    """The exact place of a row in one ranker, from 1, and its score there."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Standing:
    """One ranker's view of a target: the places of its rows by id, among `ranked` rows.

    `uncovered` are rows whose title shares a word with the query, but too little of it to count.
    """

    ranker: str
    engine: str
    ranked: int
    places: Mapping[str, Place]
    uncovered: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
    """What all rankers are asked: a query in their forms, filters, and whose places are wanted."""

    state: IndexState
    wanted: Filters
    text: str
    tokens: str
    vector: Vector | None
    target: Target


def standing(cursor: CursorWrapper, question: Question, *, ranker: str, engine: str) -> Standing:
    """Return the exact places of the target's rows in `ranker`, as `engine` orders them.

    A BM25 index is walked up to its reach of 100,000 rows. Titles count if they cover the query,
    as they do in a search. Three statements at most, after what the engine itself needs.
    """
    statement, values, order = _everything(cursor, question, ranker, engine)
    if not statement:
        return Standing(ranker, engine, 0, {})
    parameters = {
        **filters.active(question.wanted),
        **values,
        **question.target.values,
        "most": MOST_PLACES,
    }
    if ranker == "title":
        return _of_titles(cursor, question, engine, statement, parameters)
    cursor.execute(
        _PLACES.format(statement=statement, order=order, target=question.target.condition),
        parameters,
    )
    found: Sequence[tuple[str, int, float, int]] = cursor.fetchall()
    if not found:
        cursor.execute(_COUNT.format(statement=statement), parameters)
        found_count = cursor.fetchone() or (0,)
        return Standing(ranker, engine, found_count[0], {})
    places = {vector_id: Place(rank, float(score)) for vector_id, rank, score, _ in found}
    return Standing(ranker, engine, found[0][3], places)


def _of_titles(
    cursor: CursorWrapper,
    question: Question,
    engine: str,
    statement: str,
    parameters: Mapping[str, Any],
) -> Standing:
    """Count places among the titles that cover enough of the query; the others are left out."""
    cursor.execute(statement, parameters)
    titles = rankers.read(cursor)
    if engine == "bm25":  # the others sort by themselves
        titles.sort(key=lambda row: (-row.score, row.vector_id))
    kept = rankers.covering(
        cursor,
        titles=titles,
        query=question.tokens,
        state=question.state,
        share=conf.get("SEARCH_TITLE_COVERAGE"),
    )
    cursor.execute(_OF_TARGET.format(target=question.target.condition), parameters)
    wanted = {vector_id for (vector_id,) in cursor.fetchall()}
    places = {
        row.vector_id: Place(rank, row.score)
        for rank, row in enumerate(kept, 1)
        if row.vector_id in wanted
    }
    shares_a_word = wanted.intersection(row.vector_id for row in titles)
    return Standing("title", engine, len(kept), places, frozenset(shares_a_word - set(places)))


def _everything(
    cursor: CursorWrapper, question: Question, ranker: str, engine: str
) -> tuple[str, dict[str, Any], str]:
    """Return a statement that orders every row, its values, and how its rows are numbered."""
    where = filters.where(question.wanted)
    if ranker == "dense":
        statement = rankers._DENSE_EXACT.format(
            columns=rankers._COLUMNS,
            kind=question.state.vector_type,
            where=filters.where(question.wanted, "embedding IS NOT NULL"),
        )
        numbers = ",".join(map(repr, question.vector or ()))
        return statement, {"vector": f"[{numbers}]", "limit": None}, _AS_IT_COMES
    field = _FIELD[ranker]
    if engine == "bm25":
        statement = rankers._BM25.format(columns=rankers._COLUMNS, field=field, where=where)
        return statement, {"query": question.tokens, "limit": rankers.BM25_REACH}, _BY_SCORE
    if engine == "literal":
        statement = rankers._LITERAL.format(columns=rankers._COLUMNS, where=where)
        return statement, {"query": question.text.strip(), "limit": None}, _AS_IT_COMES
    statement, values = core_text.everything(
        cursor, field=field, query=question.tokens, state=question.state, wanted=question.wanted
    )
    return statement, values, _AS_IT_COMES
