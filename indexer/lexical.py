"""Care of the lexical indexes: settle BM25 after writes, count words, probe for exactness.

Two faults of pg_textsearch shape this. Before 1.2 its index scan returns wrong rows once its
postings are not in heap order, which an UPDATE brings about and a rewrite of the table mends;
before 1.3 entries that were not spilled to a segment are lost when PostgreSQL crashes.
"""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg

FIELDS: Final = ("content", "title")
PROBE_QUERIES: Final = 12  # per field at the end of a write; check_index asks for more
PROBE_DEPTH: Final = 50  # rows compared
_WORDS_PER_QUERY: Final = 3
_SAMPLE_ROWS: Final = 50_000  # rows read to count words
_COMMON: Final = 0.001  # share of rows from which a word's frequency is kept
# From this version on neither fault is there.
TRUSTED_BM25: Final = (1, 4)
# Index scans score in single precision: relative difference that still counts as equal.
_PRECISION: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Probe:
    """The outcome of comparing BM25's index scan with exact scoring of the same rows."""

    passed: bool
    at: str
    queries: int
    failed: int
    worst_recall: float
    pg_textsearch: str


def bm25_version(connection: psycopg.Connection) -> str | None:
    """Return the version of pg_textsearch in this database, None without it."""
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'pg_textsearch'"
    ).fetchone()
    return str(row[0]) if row else None


def parse_version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (1, 0, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def settle(connection: psycopg.Connection, *, moved: bool, added: bool) -> None:
    """Bring the indexes to a state that can be trusted after writes.

    `moved` says that rows were updated or deleted, `added` that rows were inserted into an index
    that was there. On a version with the faults above the first costs a rewrite of the table and
    all its indexes (VACUUM FULL), the second one of the BM25 indexes, since new rows fill gaps of
    earlier pages and so come out of heap order; searches wait meanwhile.
    """
    version = bm25_version(connection)
    mends_itself = version is None or parse_version(version) >= TRUSTED_BM25
    if moved and not mends_itself:
        connection.execute("VACUUM (FULL, ANALYZE) search_docs")
    else:
        connection.execute("VACUUM (ANALYZE) search_docs")
    if version is None:
        return
    if added and not moved and not mends_itself:
        with connection.transaction():
            # Searches hold the table, not the index: without this lock one of them could meet
            # another file of the index halfway.
            connection.execute("LOCK TABLE search_docs IN ACCESS EXCLUSIVE MODE")
            for field in FIELDS:
                connection.execute(f"REINDEX INDEX search_docs_{field}_bm25")
    for field in FIELDS:
        connection.execute("SELECT bm25_spill_index(%s)", [f"search_docs_{field}_bm25"])


def count_terms(connection: psycopg.Connection) -> None:
    """Write how many rows hold each common word, from a sample of a large table."""
    estimate = connection.execute(
        "SELECT greatest(reltuples, 1) FROM pg_class WHERE oid = 'search_docs'::regclass"
    ).fetchone()
    rows = float(estimate[0]) if estimate else 1.0
    share = min(1.0, _SAMPLE_ROWS / rows)
    sample = "" if share == 1.0 else f" TABLESAMPLE SYSTEM ({100 * share:.4f}) REPEATABLE (1)"
    with connection.transaction():
        connection.execute("DELETE FROM term_frequencies")
        for field in FIELDS:
            connection.execute(
                """
                INSERT INTO term_frequencies (field, lexeme, documents)
                SELECT %(field)s, word, (ndoc / %(share)s)::integer FROM ts_stat(%(rows)s)
                 WHERE ndoc >= greatest(%(least)s, 5)
                """,
                {
                    "field": field,
                    "share": share,
                    "rows": f"SELECT {field}_tsv FROM search_docs{sample}",  # noqa: S608
                    "least": rows * share * _COMMON,
                },
            )


def probe_and_record(
    connection: psycopg.Connection, *, queries: int = PROBE_QUERIES
) -> Probe | None:
    """Probe the BM25 indexes and write the outcome to index_info; None without BM25."""
    outcome = probe(connection, queries=queries)
    connection.execute(
        "UPDATE index_info SET lexical_probe = %s",
        [json.dumps(asdict(outcome)) if outcome else None],
    )
    return outcome


def probe(connection: psycopg.Connection, *, queries: int = PROBE_QUERIES) -> Probe | None:
    """Compare index scan and exact scoring for sampled queries on both fields.

    A query passes when every row whose exact score is clearly above the last place is in the index
    scan's answer, with its score. Returns None without BM25.
    """
    version = bm25_version(connection)
    if version is None:
        return None
    recalls = [
        _recall(connection, field, query)
        for field in FIELDS
        for query in _sample_queries(connection, field, queries)
    ]
    failed = sum(recall < 1 for recall in recalls)
    return Probe(
        passed=failed == 0,
        at=datetime.now(UTC).isoformat(),
        queries=len(recalls),
        failed=failed,
        worst_recall=min(recalls, default=1.0),
        pg_textsearch=version,
    )


def _sample_queries(connection: psycopg.Connection, field: str, queries: int) -> list[str]:
    """Return queries of three words each, taken from rows spread over the table.

    Words that every other row holds are left out: exact scoring of all rows takes minutes.
    """
    rows = connection.execute(
        f"""
        SELECT tsvector_to_array({field}_tsv) FROM search_docs
         WHERE length({field}_tsv) > 0 ORDER BY md5(vector_id) LIMIT %s
        """,  # noqa: S608 (field is one of FIELDS)
        [queries],
    ).fetchall()
    common = connection.execute(
        """
        SELECT lexeme FROM term_frequencies WHERE field = %s AND documents >
            (SELECT greatest(reltuples / 10, 50) FROM pg_class
              WHERE oid = 'search_docs'::regclass)
        """,
        [field],
    ).fetchall()
    avoided = {lexeme for (lexeme,) in common}
    chooser = random.Random(len(rows))  # noqa: S311 (the same questions every time, on purpose)
    pools = [sorted(set(words) - avoided) or sorted(words) for (words,) in rows]
    return [" ".join(chooser.sample(pool, min(_WORDS_PER_QUERY, len(pool)))) for pool in pools]


def _recall(connection: psycopg.Connection, field: str, query: str) -> float:
    """Return the share of the clearly best rows that the index scan found, scores included."""
    exact = dict(exact_scores(connection, field, query, PROBE_DEPTH + 1))
    found = dict(index_scores(connection, field, query, PROBE_DEPTH))
    if not exact:
        return 1.0 if not found else 0.0
    last = min(exact.values()) if len(exact) > PROBE_DEPTH else 0.0
    clear = {key: score for key, score in exact.items() if score > last * (1 + _PRECISION)}
    kept = sum(
        key in found and abs(found[key] - score) <= _PRECISION * score
        for key, score in clear.items()
    )
    return kept / len(clear) if clear else 1.0


def index_scores(
    connection: psycopg.Connection, field: str, query: str, limit: int
) -> Sequence[tuple[str, float]]:
    """Return (id, score) of the index scan's best rows, best first."""
    with connection.transaction():
        connection.execute("SET LOCAL enable_sort = off")
        return _pairs(
            connection,
            f"""
            SELECT vector_id, -bm25_get_current_score() FROM search_docs
             ORDER BY {field}_fts <@> to_bm25query(%(query)s, 'search_docs_{field}_bm25')
             LIMIT %(limit)s
            """,  # noqa: S608
            {"query": query, "limit": limit},
        )


def exact_scores(
    connection: psycopg.Connection, field: str, query: str, limit: int
) -> Sequence[tuple[str, float]]:
    """Return (id, score) of the best rows by scoring every row that holds a word of the query."""
    return _pairs(
        connection,
        f"""
        SELECT vector_id, -score FROM (
            SELECT vector_id,
                   {field}_fts <@> to_bm25query(%(query)s, 'search_docs_{field}_bm25') AS score
              FROM search_docs
             WHERE {field}_tsv @@
                   replace(plainto_tsquery('simple', %(query)s)::text, ' & ', ' | ')::tsquery
            OFFSET 0) AS scored
         WHERE score < 0 ORDER BY score, vector_id LIMIT %(limit)s
        """,  # noqa: S608
        {"query": query, "limit": limit},
    )


def _pairs(
    connection: psycopg.Connection, statement: Any, values: dict[str, Any]
) -> list[tuple[str, float]]:
    return [(key, float(score)) for key, score in connection.execute(statement, values).fetchall()]
