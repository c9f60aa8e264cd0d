"""PostgreSQL's own full-text search as a ranker: where BM25 is missing or cannot be trusted.

ts_rank knows no document frequencies, so they come from the owner's table: each word of the query
weighs its inverse document frequency, and only rows that hold one of the rarest words are ranked,
since ranking every row that holds a particle takes seconds.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

from django.db.backends.utils import CursorWrapper

from search import conf, filters
from search.rankers import _COLUMNS, _UNSEEN, read
from search.state import IndexState
from search.types import Candidate, Filters

# A query pasted from a log has hundreds of words; the rarest of them decide.
MAX_TERMS: Final = 48

# Returns the query's lexemes with the number of rows that hold each; null where it is rare.
_TERMS = """
SELECT term.lexeme, known.documents
  FROM unnest(tsvector_to_array(to_tsvector('simple', %(query)s))) AS term(lexeme)
  LEFT JOIN term_frequencies AS known ON known.field = %(field)s AND known.lexeme = term.lexeme
 ORDER BY known.documents NULLS FIRST, term.lexeme LIMIT %(limit)s
"""

# Returns rows that hold any of `matching`: those with one of `rare` first, then by weighted rank.
# ts_rank's flag 1 divides by the logarithm of the document's length.
_RANK = """
SELECT {columns}, score
  FROM (SELECT {columns}, {field}_tsv @@ %(rare)s::tsquery AS first,
               (SELECT sum(weight * ts_rank({field}_tsv, term, 1))
                  FROM unnest(%(terms)s::tsquery[], %(weights)s::float8[]) AS q(term, weight)
               ) AS score
          FROM search_docs WHERE {field}_tsv @@ %(matching)s::tsquery AND {where}) AS ranked
 ORDER BY first DESC, score + 0 DESC, vector_id LIMIT %(limit)s
"""


def core(
    cursor: CursorWrapper,
    *,
    field: str,
    query: str,
    state: IndexState,
    wanted: Filters,
    seen: Sequence[str],
    limit: int,
) -> list[Candidate]:
    """Rank by PostgreSQL's full-text search over `field`; `query` is normalised.

    Rows with one of the rarest words come first; only when they do not fill the window are the
    rows with any word ranked, so every row that holds a word can be reached. Two statements, or
    three.
    """
    cursor.execute(_TERMS, {"query": query, "field": field, "limit": MAX_TERMS})
    terms: list[tuple[str, int | None]] = cursor.fetchall()
    if not terms:
        return []
    rare = _rarest(terms)
    rows = _rank(cursor, field, terms, rare, rare, state, wanted, seen, limit)
    if len(rows) < limit and len(rare) < len(terms):
        everything = [lexeme for lexeme, _ in terms]
        rows = _rank(cursor, field, terms, rare, everything, state, wanted, seen, limit)
    return rows


def _rarest(terms: Sequence[tuple[str, int | None]]) -> list[str]:
    """Return the rarest lexemes whose rows together stay within the budget; at least one."""
    budget = conf.get("SEARCH_CORE_ROWS")
    chosen: list[str] = []
    for lexeme, documents in terms:
        budget -= documents or 0
        if chosen and budget < 0:
            break
        chosen.append(lexeme)
    return chosen


def everything(
    cursor: CursorWrapper, *, field: str, query: str, state: IndexState, wanted: Filters
) -> tuple[str, dict[str, Any]]:
    """Return the statement that orders all rows with any of the words, and its values.

    The statement is empty where the query has no word. One statement is run.
    """
    cursor.execute(_TERMS, {"query": query, "field": field, "limit": MAX_TERMS})
    terms: list[tuple[str, int | None]] = cursor.fetchall()
    matching = [lexeme for lexeme, _ in terms]
    statement = _RANK.format(columns=_COLUMNS, field=field, where=filters.where(wanted))
    values = _values(terms, _rarest(terms), matching, state)
    return (statement if terms else ""), {**values, "limit": None}


def _rank(
    cursor: CursorWrapper,
    field: str,
    terms: Sequence[tuple[str, int | None]],
    rare: Sequence[str],
    matching: Sequence[str],
    state: IndexState,
    wanted: Filters,
    seen: Sequence[str],
    limit: int,
) -> list[Candidate]:
    conditions = (_UNSEEN,) if seen else ()
    cursor.execute(
        _RANK.format(columns=_COLUMNS, field=field, where=filters.where(wanted, *conditions)),
        {
            **filters.active(wanted),
            **_values(terms, rare, matching, state),
            "seen": list(seen),
            "limit": limit,
        },
    )
    return read(cursor)


def _values(
    terms: Sequence[tuple[str, int | None]],
    rare: Sequence[str],
    matching: Sequence[str],
    state: IndexState,
) -> dict[str, Any]:
    rows = max(state.rows_estimate, 1)
    return {
        "rare": _any_of(rare),
        "matching": _any_of(matching),
        "terms": [_quoted(lexeme) for lexeme, _ in terms],
        "weights": [_idf(documents or 1, rows) for _, documents in terms],
    }


def _idf(documents: float, rows: float) -> float:
    """Inverse document frequency as BM25 has it (Robertson and Zaragoza 2009), above zero."""
    return math.log1p((max(rows - documents, 0) + 0.5) / (documents + 0.5))


def _any_of(lexemes: Sequence[str]) -> str:
    return " | ".join(map(_quoted, lexemes))


def _quoted(lexeme: str) -> str:
    """Quote a lexeme for tsquery's input syntax."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
