"""Where vectors and records wait for their rows: a private SQLite database on disk.

It has no name in the file system, so nothing is left of it however the process ends; it lies in
the folder that SQLITE_TMPDIR or TMPDIR names. Memory is bounded by its page cache.
"""

import json
import sqlite3
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from indexer import records
from indexer.errors import IndexerError
from indexer.vectorize import Metadata, Vector

_CACHE: Final = 64 * 1024  # KiB
# Of what no row was noted for: its number, and some ids.
_LEFTOVER: Final = {
    "vectors": "FROM vectors WHERE id NOT IN (SELECT id FROM rows)",
    "facts": "FROM facts WHERE id NOT IN (SELECT id FROM rows)",
}


class Staging:
    """Holds vectors and facts by the id of their row; use as a context manager.

    Of two with one id the later holds. Raises IndexerError where the disk does not take them.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)

    def __enter__(self) -> Self:
        self._database.executescript(
            f"""
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{_CACHE};
            CREATE TABLE vectors (id TEXT PRIMARY KEY, numbers BLOB, metadata TEXT);
            CREATE TABLE facts (id TEXT PRIMARY KEY, facts TEXT);
            CREATE TABLE rows (id TEXT PRIMARY KEY) WITHOUT ROWID;
            BEGIN;
            """
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()
        if isinstance(error, sqlite3.Error):
            raise IndexerError(
                f"the temporary file for vectors and records cannot be written: {error}. "
                "TMPDIR names its folder."
            ) from error

    def add_vector(self, vector: Vector) -> None:
        """Keep a vector, in the index's own precision, and its metadata."""
        numbers = vector.numbers.astype("<f2").tobytes()
        self._database.execute(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
            [vector.id, numbers, json.dumps(vector.metadata)],
        )

    def add_facts(self, identifier: str, facts: dict[str, Any]) -> None:
        """Keep what a record says of a row."""
        self._database.execute(
            "INSERT OR REPLACE INTO facts VALUES (?, ?)", [identifier, json.dumps(facts)]
        )

    def vector(self, identifier: str) -> tuple[str | None, Metadata]:
        """Return the vector of a row in pgvector's text form, None without, and its metadata."""
        row = self._database.execute(
            "SELECT numbers, metadata FROM vectors WHERE id = ?", [identifier]
        ).fetchone()
        if row is None:
            return None, {}
        numbers = np.frombuffer(row[0], dtype="<f2").astype(float)
        return records.vector_text(numbers.tolist()), json.loads(row[1])

    def facts(self, identifier: str) -> dict[str, Any]:
        """Return what the record of a row says, {} without one."""
        row = self._database.execute(
            "SELECT facts FROM facts WHERE id = ?", [identifier]
        ).fetchone()
        return json.loads(row[0]) if row else {}

    def note_row(self, identifier: str) -> bool:
        """Remember that there is a row; False if it was there before."""
        return (
            self._database.execute("INSERT OR IGNORE INTO rows VALUES (?)", [identifier]).rowcount
            == 1
        )

    def without_row(self, kind: str, examples: int) -> tuple[int, Sequence[str]]:
        """Return how many vectors or facts have no row, and ids of some."""
        missing = _LEFTOVER[kind]
        (count,) = self._database.execute(f"SELECT count(*) {missing}").fetchone()
        found = self._database.execute(f"SELECT id {missing} LIMIT ?", [examples])
        return count, [identifier for (identifier,) in found]
