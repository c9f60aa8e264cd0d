"""The rankers: the only code that reads search_docs for candidates.

Each returns at most `limit` rows, best first, ties by vector_id, with every filter applied inside
the statement and the entities in `seen` left out. Two facts shape the statements:

- The state's transaction has `enable_sort` off, so `ORDER BY <operator>` walks the index, and an
  order that no index gives (an expression around the operator) is an exact scan.
- An index walk gives equal scores in no useful order. So twice the window is fetched and sorted
  by (score, id); if a tie reaches past what was fetched, more is fetched.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db.backends.utils import CursorWrapper

from search import filters
from search.embedding import Vector
from search.entities import ENTITY_KEY_SQL
from search.errors import EmbeddingError
from search.state import IndexState
from search.types import Candidate, Filters

_COLUMNS: Final = "vector_id, repo, type, number, doc_path, file_path, created_at, updated_at"
_UNSEEN: Final = f"({ENTITY_KEY_SQL}) <> ALL(%(seen)s)"

# pg_textsearch stops looking after this many rows of the index, whatever the filters left of them.
BM25_REACH: Final = 100_000

# Returns the nearest rows in the order of the HNSW graph; may stop early under a hard filter.
_DENSE_HNSW = """
SELECT {columns}, 1 - (embedding <=> %(vector)s::{kind}) AS score
  FROM search_docs WHERE {where}
 ORDER BY embedding <=> %(vector)s::{kind} LIMIT %(limit)s
"""

# Returns the nearest rows of all: a zero vector has no direction, its distance is NaN.
_DENSE_EXACT = """
SELECT {columns}, 1 - distance AS score
  FROM (SELECT {columns}, embedding <=> %(vector)s::{kind} AS distance
          FROM search_docs WHERE {where}) AS compared
 WHERE distance < 'NaN' ORDER BY distance + 0, vector_id LIMIT %(limit)s
"""

# Returns rows in BM25 order. The score is the one the scan just computed; asking for the operator
# again would parse each row's text again, which costs seventy times the scan.
_BM25 = """
SELECT {columns}, -bm25_get_current_score() AS score
  FROM search_docs WHERE {where}
 ORDER BY {field}_fts <@> to_bm25query(%(query)s, 'search_docs_{field}_bm25') LIMIT %(limit)s
"""

# Returns rows in BM25 order by scoring every row that holds a word of the query.
_BM25_EXACT = """
SELECT {columns}, -relevance AS score
  FROM (SELECT {columns},
               {field}_fts <@> to_bm25query(%(query)s, 'search_docs_{field}_bm25') AS relevance
          FROM search_docs
         WHERE {field}_tsv @@
               replace(plainto_tsquery('simple', %(query)s)::text, ' & ', ' | ')::tsquery
           AND {where} OFFSET 0) AS scored
 WHERE relevance < 0 ORDER BY relevance + 0, vector_id LIMIT %(limit)s
"""

# Returns the ids, of those given, whose title's words carry enough of the query's weight.
_COVERING = """
WITH term AS (
    SELECT q.lexeme, ln(1 + (greatest(%(rows)s - coalesce(documents, 1), 0) + 0.5)
                            / (coalesce(documents, 1) + 0.5)) AS weight
      FROM unnest(tsvector_to_array(to_tsvector('simple', %(query)s))) AS q(lexeme)
      LEFT JOIN term_frequencies AS known ON field = 'content' AND known.lexeme = q.lexeme
)
SELECT vector_id FROM search_docs
 WHERE vector_id = ANY(%(ids)s)
   AND (SELECT sum(weight) FROM term WHERE lexeme = ANY(tsvector_to_array(title_tsv)))
       >= %(share)s * (SELECT sum(weight) FROM term)
"""

# Returns rows whose content holds the text literally; for a query without any word.
_LITERAL = """
SELECT {columns}, 1.0 AS score
  FROM search_docs WHERE strpos(content, %(query)s) > 0 AND {where}
 ORDER BY vector_id LIMIT %(limit)s
"""


def dense(
    cursor: CursorWrapper,
    *,
    vector: Vector,
    state: IndexState,
    wanted: Filters,
    seen: Sequence[str],
    limit: int,
) -> list[Candidate]:
    """Rank by cosine similarity to `vector`, a unit vector of the index's dimension.

    Exact while few rows pass the filters, by the HNSW index beyond; where the index gives up
    before `limit` rows, or cannot order a tie, the exact scan answers.
    Raises EmbeddingError, naming both sizes, when the dimensions differ.
    """
    if len(vector) != state.dimensions:
        raise EmbeddingError(
            f"The query vector has {len(vector)} dimensions, the index {state.dimensions}."
        )
    values: dict[str, Any] = {"vector": f"[{','.join(map(repr, vector))}]"}
    condition = "embedding IS NOT NULL"
    if not state.exact:
        rows = _fetch(
            cursor, _DENSE_HNSW, wanted, seen, 2 * limit, values, condition, kind=state.vector_type
        )
        if len(rows) == 2 * limit and not _tied_beyond(rows, limit):
            return _ordered(rows)[:limit]
    return _fetch(
        cursor, _DENSE_EXACT, wanted, seen, limit, values, condition, kind=state.vector_type
    )


def bm25(
    cursor: CursorWrapper,
    *,
    field: str,
    query: str,
    state: IndexState,
    wanted: Filters,
    seen: Sequence[str],
    limit: int,
) -> list[Candidate]:
    """Rank by BM25 over `field` (`content` or `title`); `query` is normalised.

    Scores have single precision, as the index computes them.
    """
    fetch = 2 * limit
    while True:
        rows = _fetch(cursor, _BM25, wanted, seen, fetch, {"query": query}, field=field)
        if len(rows) < fetch and not 0 <= state.rows_estimate < BM25_REACH:
            return _fetch(cursor, _BM25_EXACT, wanted, seen, limit, {"query": query}, field=field)
        if len(rows) < fetch or not _tied_beyond(rows, limit) or fetch >= BM25_REACH:
            return _ordered(rows)[:limit]
        fetch = min(8 * fetch, BM25_REACH)


def literal(
    cursor: CursorWrapper, *, query: str, wanted: Filters, seen: Sequence[str], limit: int
) -> list[Candidate]:
    """Find rows whose content holds `query` as it stands; every score is 1."""
    return _fetch(cursor, _LITERAL, wanted, seen, limit, {"query": query})


def covering(
    cursor: CursorWrapper,
    *,
    titles: Sequence[Candidate],
    query: str,
    state: IndexState,
    share: float,
) -> list[Candidate]:
    """Keep the rows whose title's words carry at least `share` of the query's weight.

    A word weighs its inverse document frequency among contents, where words of questions (why, did,
    we) are common; among titles they are rare, and would weigh most. `query` is normalised; order
    stays.
    """
    if not titles or share <= 0:
        return list(titles)
    values: dict[str, Any] = {
        "ids": [row.vector_id for row in titles],
        "query": query,
        "rows": max(state.rows_estimate, 1.0),
        "share": share,
    }
    cursor.execute(_COVERING, values)
    kept = {vector_id for (vector_id,) in cursor.fetchall()}
    return [row for row in titles if row.vector_id in kept]


def _fetch(
    cursor: CursorWrapper,
    statement: str,
    wanted: Filters,
    seen: Sequence[str],
    limit: int,
    values: dict[str, Any],
    *conditions: str,
    **names: str,
) -> list[Candidate]:
    """Run one statement of the table above; `names` fill its braces and are never user input."""
    if seen:
        conditions = (*conditions, _UNSEEN)
    cursor.execute(
        statement.format(columns=_COLUMNS, where=filters.where(wanted, *conditions), **names),
        {**filters.active(wanted), **values, "seen": list(seen), "limit": limit},
    )
    return read(cursor)


def read(cursor: CursorWrapper) -> list[Candidate]:
    """Turn the rows of a statement that selects the candidate columns and `score` into values."""
    return [
        Candidate(
            vector_id=vector_id,
            repo=repo,
            type=type_,
            number=number,
            doc_path=doc_path,
            file_path=file_path,
            created_at=created_at,
            updated_at=updated_at,
            score=float(score),
        )
        for (
            vector_id, repo, type_, number, doc_path, file_path, created_at, updated_at, score,
        ) in cursor.fetchall()
    ]  # fmt: skip


def _ordered(rows: list[Candidate]) -> list[Candidate]:
    return sorted(rows, key=lambda row: (-row.score, row.vector_id))


def _tied_beyond(rows: list[Candidate], limit: int) -> bool:
    """Whether the row at `limit` has the score of the last row fetched: its tie may go on."""
    return rows[limit - 1].score == rows[-1].score
