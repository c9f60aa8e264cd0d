"""What the index database is and can do, read once at the start of a search."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.backends.utils import CursorWrapper

from search import conf, filters
from search.errors import IndexUnavailable
from search.types import Filters

# Below this version BM25 answers wrongly after updates and loses entries at a crash, unless the
# owner's probe passed after the last write: docs/decisions/bm25-engine.md.
TRUSTED_BM25 = (1, 4)

# Returns one row. The settings hold until the end of the transaction: a plan never sorts where an
# index gives the order, so the choice between index and exact scan is made in rankers.py, not by
# cost estimates; filtered HNSW scans go on until the window is full.
_STATE = """
SELECT set_config('enable_sort', 'off', true),
       set_config('statement_timeout', %(timeout)s, true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.ef_search', %(ef)s, true),
       info.contract_version, info.embedding_model, info.dimensions, info.normaliser_version,
       info.written_at, info.lexical_probe,
       (SELECT extversion FROM pg_extension WHERE extname = 'pg_textsearch') AS bm25_version,
       (SELECT count(*) = 2 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
         WHERE indrelid = 'search_docs'::regclass AND indisvalid AND indisready
           AND relname IN ('search_docs_content_bm25', 'search_docs_title_bm25')) AS bm25_indexes,
       concat_ws(' ', pg_relation_filenode(to_regclass('search_docs_content_bm25')),
                 pg_relation_filenode(to_regclass('search_docs_title_bm25'))) AS bm25_files,
       (SELECT reltuples FROM pg_class WHERE oid = 'search_docs'::regclass) AS rows_estimate,
       (SELECT format_type(atttypid, atttypmod) FROM pg_attribute
         WHERE attrelid = 'search_docs'::regclass AND attname = 'embedding') AS embedding_type,
       (SELECT count(*) FROM (SELECT FROM search_docs WHERE {where} LIMIT %(limit)s) AS few)
           AS vectors
  FROM (VALUES (1)) AS one LEFT JOIN index_info AS info ON true
"""


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index as one search found it.

    `vectors` counts the rows with a vector that pass the filters, up to one more than the limit
    of the exact scan. `rows_estimate` is the planner's row count, -1 before the first ANALYZE.
    """

    contract_version: int | None
    embedding_model: str
    dimensions: int
    vector_type: str
    normaliser_version: str
    written_at: datetime | None
    lexical_probe: Mapping[str, Any]
    bm25_version: str | None
    bm25_indexes: bool
    bm25_files: str
    rows_estimate: float
    vectors: int

    @property
    def exact(self) -> bool:
        """Whether few enough rows pass the filters to compare every vector."""
        return self.vectors <= int(conf.get("SEARCH_DENSE_EXACT_ROWS"))

    def bm25_refusal(self) -> str | None:
        """Return why BM25 may not be used, or None when it may."""
        if self.bm25_version is None:
            return "the database has no pg_textsearch extension"
        if not self.bm25_indexes:
            return "the BM25 indexes are missing or not valid"
        if _version(self.bm25_version) >= TRUSTED_BM25:
            return None
        if not self.lexical_probe.get("passed"):
            return (
                f"pg_textsearch {self.bm25_version} has not passed the owner's exactness probe; "
                "run manage.py check_index"
            )
        if (
            self.written_at is None
            or datetime.fromisoformat(self.lexical_probe["at"]) < self.written_at
        ):
            return "the index was written after the last exactness probe; run manage.py check_index"
        return None


def read_state(cursor: CursorWrapper, wanted: Filters) -> IndexState:
    """Read the state, and set what this transaction needs. One statement.

    Raises IndexUnavailable when the database holds no index.
    """
    limit = conf.get("SEARCH_DENSE_EXACT_ROWS") + 1
    cursor.execute(
        _STATE.format(where=filters.where(wanted, "embedding IS NOT NULL")),
        {
            **filters.active(wanted),
            "limit": limit,
            "timeout": str(conf.get("SEARCH_STATEMENT_TIMEOUT_MS")),
            "ef": str(conf.get("SEARCH_HNSW_EF")),
        },
    )
    names = [column.name for column in cursor.description or ()]
    row = dict(zip(names, cursor.fetchone() or (), strict=True))
    if row["contract_version"] is None:
        raise IndexUnavailable("The index is empty: nothing has been loaded yet.")
    kind, dimensions = _vector_type(row["embedding_type"])
    return IndexState(
        contract_version=row["contract_version"],
        embedding_model=row["embedding_model"],
        dimensions=dimensions or row["dimensions"],
        vector_type=kind,
        normaliser_version=row["normaliser_version"],
        written_at=row["written_at"],
        lexical_probe=json.loads(row["lexical_probe"] or "{}"),  # Django leaves jsonb as text
        bm25_version=row["bm25_version"],
        bm25_indexes=row["bm25_indexes"],
        bm25_files=row["bm25_files"],
        rows_estimate=row["rows_estimate"],
        vectors=row["vectors"],
    )


def _vector_type(formatted: str) -> tuple[str, int]:
    """Split `halfvec(384)` into its name and dimension; 0 where the column declares none."""
    match = re.fullmatch(r"(?:\w+\.)?(vector|halfvec)(?:\((\d+)\))?", formatted)
    if match is None:
        raise IndexUnavailable(
            f"search_docs.embedding has type {formatted}; it must be vector or halfvec."
        )
    return match[1], int(match[2] or 0)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
