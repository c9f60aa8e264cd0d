"""The store: the only writer of an index.

Every writing command opens a `Writer`, stores batches (one transaction each) and calls `finish`.
The state table remembers that a command is writing; a command that died is seen by the next one,
which then rewrites the table, since BM25 entries may have been lost with it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from types import TracebackType
from typing import Any, Final, Self, cast

import psycopg
from psycopg import sql

from indexer import lexical
from indexer.errors import Incompatible, IndexerError
from indexer.records import COLUMNS, EDGE_COLUMNS, MADE_COLUMNS, Values
from search.normalise import NORMALISER_VERSION

CONTRACT_VERSION: Final = 1
_INDEXES_FOLLOW: Final = "-- indexes:"
_BUILT_LAST: Final = (
    "search_docs_embedding",
    "search_docs_content_tsv",
    "search_docs_title_tsv",
    "search_docs_content_bm25",
    "search_docs_title_bm25",
)
_ROW_COLUMNS: Final = (*COLUMNS, *MADE_COLUMNS)

# The owner's own notes: unfinished writes and the progress of loads. Readers have no right to it.
_STATE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS indexer_state (
    key text PRIMARY KEY, value jsonb NOT NULL, written_at timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(slots=True)
class Tally:
    """What the batches of one writer did to the rows and edges of the index."""

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    edges: int = 0


def connect(url: str) -> psycopg.Connection:
    """Connect as the owner, in autocommit mode; raises IndexerError naming the remedy."""
    try:
        return psycopg.connect(url, autocommit=True, application_name="indexer")
    except psycopg.OperationalError as error:
        raise IndexerError(f"cannot reach the index database (INDEX_OWNER_URL): {error}") from error


def init_schema(url: str, *, dimensions: int) -> None:
    """Create the tables, indexes, roles and grants of an index; idempotent."""
    with connect(url) as connection:
        _create(connection, dimensions, with_indexes=True)


def _create(connection: psycopg.Connection, dimensions: int, *, with_indexes: bool) -> None:
    script = resources.files("indexer").joinpath("schema.sql").read_text()
    tables, _, indexes = script.replace(":dimensions", str(int(dimensions))).partition(
        _INDEXES_FOLLOW
    )
    connection.execute(cast(Any, tables))
    connection.execute(cast(Any, _STATE_TABLE))
    if with_indexes:
        connection.execute(cast(Any, f"--{indexes}"))
    connection.execute("RESET ROLE")


class Writer:
    """A connection that writes one index; use as a context manager, end with `finish`.

    Raises Incompatible when the index holds vectors of another model or dimension, before
    anything is written.
    """

    def __init__(self, url: str, *, embedding_model: str, dimensions: int, source: str) -> None:
        self.tally = Tally()
        self._model = embedding_model
        self._dimensions = dimensions
        self._source = source
        self.connection = connect(url)
        try:
            self._check_fit()
            # A bulk load is several times faster when the indexes are built at its end.
            self._fresh = not self._has_rows()
            _create(self.connection, dimensions, with_indexes=not self._fresh)
            self._prepare_empty_table()
            self._unfinished = self.recall("writing") is not None
            self.remember("writing", True)
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

    def store(
        self,
        rows: Sequence[Values],
        edges: Sequence[Values] = (),
        *,
        deleted: Sequence[str] = (),
        progress: Mapping[str, Any] | None = None,
    ) -> None:
        """Store one batch in one transaction: upsert rows by id and edges by both ends, delete ids.

        A row that is already there in the same form is left alone. `progress` is remembered with
        the batch, under the key `load`.
        """
        with self.connection.transaction():
            if deleted:
                gone = self.connection.execute(
                    "DELETE FROM search_docs WHERE vector_id = ANY(%s)", [list(deleted)]
                )
                self.tally.deleted += gone.rowcount
            self._upsert_rows(_latest(rows, "vector_id"))
            self._upsert_edges(_latest(edges, "src_vector_id", "dst_vector_id"))
            self._note_write()
            if progress is not None:
                self.remember("load", progress)

    def finish(self) -> lexical.Probe | None:
        """Make the index ready for searching after the last batch, and say what it holds.

        Builds what is missing, brings BM25 to a state that can be trusted (spill, or rewrite of
        the table where rows changed), counts words, and probes the lexical index; the outcome is
        written to index_info and returned (None without BM25).
        """
        _create(self.connection, self._dimensions, with_indexes=True)
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
        info = self.connection.execute(
            "SELECT embedding_model, dimensions FROM index_info"
        ).fetchone()
        if info and info != (self._model, self._dimensions):
            raise Incompatible(
                f"the index holds {info[1]}-dimensional vectors of {info[0]}; the input has "
                f"{self._dimensions}-dimensional vectors of {self._model}. Nothing was written. "
                "Load it into an empty database, or embed it again with the index's model."
            )

    def _has_rows(self) -> bool:
        exists = self.connection.execute("SELECT to_regclass('search_docs')").fetchone()
        if exists is None or exists[0] is None:
            return False
        return bool(self.connection.execute("SELECT FROM search_docs LIMIT 1").fetchall())

    def _prepare_empty_table(self) -> None:
        """Make an empty table ready for a bulk load: the input's dimension, and no index that is
        slow to fill row by row."""
        if not self._fresh:
            return
        for name in _BUILT_LAST:
            self.connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(name)))
        self.connection.execute(
            sql.SQL("ALTER TABLE search_docs ALTER COLUMN embedding TYPE halfvec({})").format(
                sql.Literal(self._dimensions)
            )
        )

    def _upsert_rows(self, rows: Sequence[Values]) -> None:
        if not rows:
            return
        self._stage("search_docs", _ROW_COLUMNS, rows)
        result = self.connection.execute(_upsert("search_docs", _ROW_COLUMNS, ("vector_id",)))
        inserted = [fresh for (fresh,) in result.fetchall()]
        self.tally.inserted += sum(inserted)
        self.tally.updated += len(inserted) - sum(inserted)
        self.tally.unchanged += len(rows) - len(inserted)

    def _upsert_edges(self, edges: Sequence[Values]) -> None:
        if not edges:
            return
        self._stage("doc_edges", tuple(EDGE_COLUMNS), edges)
        ends = ("src_vector_id", "dst_vector_id")
        self.connection.execute(_upsert("doc_edges", tuple(EDGE_COLUMNS), ends))
        self.tally.edges += len(edges)

    def _stage(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        """Copy values into a temporary table shaped like the target."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        self.connection.execute(
            sql.SQL(
                "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA"
            ).format(_staged(table), names, sql.Identifier(table))
        )
        with (
            self.connection.cursor() as cursor,
            cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(_staged(table), names)) as copy,
        ):
            for row in rows:
                copy.write_row([row[name] for name in columns])

    def _note_write(self) -> None:
        """Set written_at: from here on an older probe vouches for nothing."""
        self.connection.execute(
            """
            INSERT INTO index_info (contract_version, embedding_model, dimensions,
                                    normaliser_version, source, built_at, written_at)
            VALUES (%s, %s, %s, %s, %s, now(), clock_timestamp())
            ON CONFLICT (id) DO UPDATE SET
                contract_version = EXCLUDED.contract_version,
                embedding_model = EXCLUDED.embedding_model, dimensions = EXCLUDED.dimensions,
                normaliser_version = EXCLUDED.normaliser_version, source = EXCLUDED.source,
                written_at = EXCLUDED.written_at
            """,
            [CONTRACT_VERSION, self._model, self._dimensions, NORMALISER_VERSION, self._source],
        )


def _latest(records: Sequence[Values], *key: str) -> list[Values]:
    """Keep the last of records with one key: a statement cannot touch a row twice."""
    return list({tuple(record[name] for name in key): record for record in records}.values())


def _staged(table: str) -> sql.Identifier:
    return sql.Identifier(f"staged_{table}")


def _upsert(table: str, columns: Sequence[str], key: Sequence[str]) -> sql.Composed:
    """Return the statement that moves what is staged for `table` into it.

    It returns a row for each row written: true where it was inserted, false where updated.
    """
    rest = [name for name in columns if name not in key]
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    stamp = sql.SQL(", indexed_at = now()" if table == "search_docs" else "")
    return sql.SQL(
        "INSERT INTO {table} AS kept ({names}) SELECT {names} FROM {staged} "
        "ON CONFLICT ({key}) DO UPDATE SET {assign}{stamp} "
        "WHERE ({mine}) IS DISTINCT FROM ({theirs}) RETURNING xmax = 0"
    ).format(
        table=sql.Identifier(table),
        staged=_staged(table),
        names=names,
        key=sql.SQL(", ").join(map(sql.Identifier, key)),
        assign=sql.SQL(", ").join(
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in rest
        ),
        stamp=stamp,
        mine=sql.SQL(", ").join(sql.Identifier("kept", name) for name in rest),
        theirs=sql.SQL(", ").join(sql.Identifier("excluded", name) for name in rest),
    )
