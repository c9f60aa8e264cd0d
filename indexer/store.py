"""The store: the only writer of an index.

Every writing command opens a `Writer`, stores batches (one transaction each) and calls `finish`.
The state table remembers that a command is writing; a command that died is seen by the next one,
which then rewrites the table, since BM25 entries may have been lost with it. Commands take turns:
an advisory lock lets one at a time write.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import psycopg
from psycopg import sql

from indexer import lexical, renormalise, upsert
from indexer.errors import Incompatible, IndexerError
from indexer.records import COLUMNS, EDGE_COLUMNS, MADE_COLUMNS, Values
from indexer.tables import BUILT_LAST, connect, create, has_table
from search.normalise import NORMALISER_VERSION

__all__ = ["Tally", "Writer", "clear", "connect", "describe", "init_schema"]

CONTRACT_VERSION: Final = 1
_ROW_COLUMNS: Final = (*COLUMNS, *MADE_COLUMNS)
# The server may still be busy with a batch of a command that was just killed.
_WAIT_FOR_TURN: Final = "20s"
_TURN: Final = 0x7261672D696E6478  # "rag-indx", the key of the advisory lock


@dataclass(slots=True)
class Tally:
    """What the batches of one writer did to the rows and edges of the index."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    edges: int = 0


def describe(connection: psycopg.Connection) -> tuple[str, int] | None:
    """Return the model and dimension of an index's vectors, None where nothing was written."""
    if not has_table(connection, "index_info"):
        return None
    row = connection.execute("SELECT embedding_model, dimensions FROM index_info").fetchone()
    return (row[0], row[1]) if row else None


def init_schema(url: str, *, dimensions: int) -> None:
    """Create the tables, indexes, roles and grants of an index; idempotent."""
    with connect(url) as connection:
        create(connection, dimensions, with_indexes=True)


def clear(url: str, *, unless_source: str) -> bool:
    """Empty an index, unless what it holds came from `unless_source`; True if it was emptied."""
    with connect(url) as connection:
        if not has_table(connection, "index_info"):
            return False
        info = connection.execute("SELECT source FROM index_info").fetchone()
        if info is None or info[0] == unless_source:
            return False
        connection.execute(
            "TRUNCATE search_docs, doc_edges, index_info, term_frequencies, indexer_state"
        )
        return True


class Writer:
    """A connection that writes one index; use as a context manager, end with `finish`.

    Raises Incompatible when the index holds vectors of another model or dimension, before
    anything is written, and IndexerError while another command writes.
    """

    def __init__(self, url: str, *, embedding_model: str, dimensions: int, source: str) -> None:
        self.tally = Tally()
        self._model = embedding_model
        self.dimensions = dimensions
        self._source = source
        self.connection = connect(url)
        try:
            self._take_turn()
            self._check_fit()
            # A bulk load is several times faster when the indexes are built at its end.
            self._fresh = not self._has_rows()
            create(self.connection, dimensions, with_indexes=not self._fresh)
            self._prepare_empty_table()
            self._unfinished = self._wrote = self.recall("writing") is not None
            self._described = describe(self.connection) is not None
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.close()

    @property
    def fresh(self) -> bool:
        """Whether the table was empty when this writer came."""
        return self._fresh

    @property
    def unfinished(self) -> bool:
        """Whether `finish` is due, for this writer's doing or for one that died.

        In an empty table it always is: its slow indexes were dropped for the bulk load.
        """
        return self._fresh or self._wrote

    def store(
        self,
        rows: Sequence[Values],
        edges: Sequence[Values] = (),
        *,
        deleted: Sequence[str] = (),
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Store one batch in one transaction: upsert rows by id and edges by both ends, delete ids.

        A row that is already there in the same form is left alone. `notes` are remembered with
        the batch, each under its key.
        """
        if (rows or edges or deleted) and not self._wrote:
            # Before the batch: a rolled-back one leaves its traces in BM25 too.
            self.remember("writing", True)
            self._wrote = True
            if renormalise.is_stale(self.connection):
                self.tally.updated += renormalise.renormalise(self.connection)
        with self.connection.transaction():
            changed = self._delete_rows(deleted)
            changed += self._upsert_rows(upsert.latest(rows, "vector_id"))
            changed += self._upsert_edges(upsert.latest(edges, "src_vector_id", "dst_vector_id"))
            if changed or not self._described:
                self._note_write()
            for key, value in (notes or {}).items():
                self.remember(key, value)

    def finish(self) -> lexical.Probe | None:
        """Make the index ready for searching after the last batch, and say what it holds.

        Builds what is missing, brings BM25 to a state that can be trusted (spill, or rewrite of
        the table where rows changed), counts words, and probes the lexical index; the outcome is
        written to index_info and returned (None without BM25).
        """
        create(self.connection, self.dimensions, with_indexes=True)
        tally = self.tally
        lexical.settle(
            self.connection,
            moved=self._unfinished or tally.updated > 0 or tally.deleted > 0,
            added=tally.inserted > 0 and not self._fresh,
        )
        lexical.count_terms(self.connection)
        probe = lexical.probe_and_record(self.connection)
        self.connection.execute("DELETE FROM indexer_state WHERE key IN ('writing', 'load')")
        return probe

    def remember(self, key: str, value: Any) -> None:
        """Keep a value of the owner's under a key."""
        self.connection.execute(
            "INSERT INTO indexer_state (key, value) VALUES (%s, %s) "
            "ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value, written_at = now()",
            [key, json.dumps(value)],
        )

    def recall(self, key: str) -> Any:
        """Return the value kept under a key, or None."""
        row = self.connection.execute(
            "SELECT value FROM indexer_state WHERE key = %s", [key]
        ).fetchone()
        return row[0] if row else None

    def _check_fit(self) -> None:
        """Compare the input's model and dimension with the index, if there is one with rows."""
        if not self._has_rows():
            return
        info = describe(self.connection)
        if info and info != (self._model, self.dimensions):
            raise Incompatible(
                f"the index holds {info[1]}-dimensional vectors of {info[0]}; the input has "
                f"{self.dimensions}-dimensional vectors of {self._model}. Nothing was written. "
                "Load it into an empty database, or embed it again with the index's model."
            )

    def _has_rows(self) -> bool:
        if not has_table(self.connection, "search_docs"):
            return False
        return bool(self.connection.execute("SELECT FROM search_docs LIMIT 1").fetchall())

    def _prepare_empty_table(self) -> None:
        """Make an empty table ready for a bulk load: the input's dimension, and no index that is
        slow to fill row by row."""
        if not self._fresh:
            return
        for name in BUILT_LAST:
            self.connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(name)))
        self.connection.execute(
            sql.SQL("ALTER TABLE search_docs ALTER COLUMN embedding TYPE halfvec({})").format(
                sql.Literal(self.dimensions)
            )
        )

    def _take_turn(self) -> None:
        """Wait for another command that writes; raises IndexerError if it takes too long."""
        self.connection.execute("SELECT set_config('lock_timeout', %s, false)", [_WAIT_FOR_TURN])
        try:
            self.connection.execute("SELECT pg_advisory_lock(%s)", [_TURN])
        except psycopg.errors.LockNotAvailable:
            raise IndexerError("Another command is writing this index; try again later.") from None
        self.connection.execute("RESET lock_timeout")

    def _delete_rows(self, ids: Sequence[str]) -> int:
        if not ids:
            return 0
        gone = self.connection.execute(
            "DELETE FROM search_docs WHERE vector_id = ANY(%s)", [list(ids)]
        )
        self.tally.deleted += gone.rowcount
        return gone.rowcount

    def _upsert_rows(self, rows: Sequence[Values]) -> int:
        written = self._upsert("search_docs", _ROW_COLUMNS, ("vector_id",), rows)
        self.tally.inserted += sum(written)
        self.tally.updated += len(written) - sum(written)
        self.tally.unchanged += len(rows) - len(written)
        return len(written)

    def _upsert_edges(self, edges: Sequence[Values]) -> int:
        ends = ("src_vector_id", "dst_vector_id")
        self.tally.edges += len(edges)
        return len(self._upsert("doc_edges", tuple(EDGE_COLUMNS), ends, edges))

    def _upsert(
        self, table: str, columns: Sequence[str], key: Sequence[str], rows: Sequence[Values]
    ) -> list[bool]:
        """Return for each row written whether it is new; rows that are there already are not."""
        if not rows:
            return []
        self.connection.execute(upsert.stage(table, columns))
        with (
            self.connection.cursor() as cursor,
            cursor.copy(upsert.fill(table, columns)) as copy,
        ):
            for row in rows:
                copy.write_row([row[name] for name in columns])
        result = self.connection.execute(upsert.upsert(table, columns, key))
        return [fresh for (fresh,) in result.fetchall()]

    def _note_write(self) -> None:
        """Set written_at: from here on an older probe vouches for nothing.

        Sources add up: an index may hold several repositories.
        """
        self.connection.execute(
            """
            INSERT INTO index_info (contract_version, embedding_model, dimensions,
                                    normaliser_version, source, built_at, written_at)
            VALUES (%s, %s, %s, %s, %s, now(), clock_timestamp())
            ON CONFLICT (id) DO UPDATE SET
                contract_version = EXCLUDED.contract_version,
                embedding_model = EXCLUDED.embedding_model, dimensions = EXCLUDED.dimensions,
                normaliser_version = EXCLUDED.normaliser_version,
                written_at = EXCLUDED.written_at,
                source = CASE
                    WHEN position(EXCLUDED.source in index_info.source) > 0 THEN index_info.source
                    WHEN index_info.source = '' OR %s THEN EXCLUDED.source
                    ELSE index_info.source || ', ' || EXCLUDED.source END
            """,
            [
                CONTRACT_VERSION,
                self._model,
                self.dimensions,
                NORMALISER_VERSION,
                self._source,
                self._fresh,
            ],
        )
        self._described = True
