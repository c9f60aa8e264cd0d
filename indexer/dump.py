"""Writing an index to a snapshot file, from one moment of the database, in bounded memory."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from indexer import records, store
from indexer.errors import IndexerError
from indexer.snapshot import FORMAT, VERSION

_FETCHED: Final = 1_000  # rows that the server's cursor hands over at a time


def dump_snapshot(
    url: str, path: Path, *, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> int:
    """Write the index at `url` to a gzip snapshot, rows by id, and return the records written.

    Loading the file into an empty database gives the same rows and edges; the same index gives
    the same file. The file appears whole or not at all. `on_progress` is told how many of all
    records are written. Raises IndexerError for an empty index and a file that cannot be written.
    """
    with store.connect(url) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        header = _header(connection)
        total = _count(connection)
        done = 0
        with _whole_file(path) as file:
            file.write(_line(header))
            for record in _records(connection):
                file.write(_line(record))
                done += 1
                if done % _FETCHED == 0:
                    on_progress(done, total)
        on_progress(done, total)
    return done


def _header(connection: psycopg.Connection) -> dict[str, Any]:
    if store.describe(connection) is None:
        raise IndexerError("There is no index to dump: nothing was ever written to it.")
    # The model, dimension and source of the index.
    row = connection.execute(
        "SELECT embedding_model, dimensions, source FROM index_info"
    ).fetchone()
    model, dimensions, source = row or ("", 0, "")
    return {
        "kind": "header",
        "format": FORMAT,
        "version": VERSION,
        "embedding_model": model,
        "dimensions": dimensions,
        "embedding_encoding": "base64 float16 LE",
        "source": source,
    }


def _count(connection: psycopg.Connection) -> int:
    # The number of rows and edges.
    row = connection.execute(
        "SELECT (SELECT count(*) FROM search_docs) + (SELECT count(*) FROM doc_edges)"
    ).fetchone()
    return int(row[0]) if row else 0


def _records(connection: psycopg.Connection) -> Iterator[dict[str, Any]]:
    """Yield the rows, then the edges, each in the order of their keys."""
    vector = sql.SQL("embedding::text AS embedding")
    columns = [*map(sql.Identifier, records.COLUMNS), vector]
    for row in _read(connection, "search_docs", columns, ("vector_id",)):
        row["embedding"] = records.encode_vector(row["embedding"])
        yield {"kind": "row", **row}
    columns = [*map(sql.Identifier, records.EDGE_COLUMNS)]
    for edge in _read(connection, "doc_edges", columns, ("src_vector_id", "dst_vector_id")):
        yield {"kind": "edge", **edge}


def _read(
    connection: psycopg.Connection,
    table: str,
    columns: list[sql.Composable],
    order: tuple[str, ...],
) -> Iterator[dict[str, Any]]:
    # The columns of all rows of a table, in order, by a cursor of the server.
    statement = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
        sql.SQL(", ").join(columns),
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, order)),
    )
    with connection.cursor(f"dump_{table}", row_factory=dict_row) as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(statement)
        yield from cursor


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, default=_time).encode() + b"\n"


def _time(value: Any) -> str:
    """Return a time in UTC, whatever zone the database reports it in."""
    return cast(datetime, value).astimezone(UTC).isoformat()


@contextmanager
def _whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a gzip file that takes the place of `path` when everything is written.

    There is no name and no time in its header.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        try:
            with (
                unfinished.open("wb") as raw,
                gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file,
            ):
                yield cast(BinaryIO, file)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise IndexerError(f"cannot write {path}: {error.strerror}") from error
