"""Storing what was read: only rows that differ from those that are there, with their vectors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg import sql
from psycopg.rows import dict_row

from indexer import records
from indexer.embed import Batch, Vectors
from indexer.errors import BadRecord
from indexer.github_report import GitHubReport
from indexer.github_rows import Item
from indexer.records import Values
from indexer.store import Writer


class RowStore:
    """Puts items into the index. `embed` says whether rows without a vector are to get one."""

    def __init__(
        self,
        writer: Writer,
        vectors: Vectors,
        report: GitHubReport,
        repo: str,
        *,
        embed: bool,
    ) -> None:
        self._repo = repo
        self._writer = writer
        self._vectors = vectors
        self._report = report
        self._embed = embed
        self._batch = Batch()

    def put(
        self,
        items: Sequence[Item],
        notes: Mapping[str, Any],
        *,
        deleted: Iterable[str] = (),
        edges: Sequence[Values] = (),
    ) -> None:
        """Store items, delete rows, and remember notes, these with the last batch.

        Rows of items that are left out are deleted too: an edit may have made them so. Raises
        IndexerError when the embedding backend fails.
        """
        rows = {row["vector_id"]: row for row in map(self._row, items) if row is not None}
        left_out = {item.vector_id for item in items} - rows.keys() - {""}
        stored = self.stored([*rows, *left_out, *deleted])
        waiting = [row for key, row in rows.items() if self._differs(row, stored.get(key))]
        gone = sorted(stored.keys() - rows.keys())
        while len(waiting) > self._batch.size:
            some, waiting = waiting[: self._batch.size], waiting[self._batch.size :]
            with self._batch:
                self._vectors.fill(some)
                self._writer.store(some)
        with self._batch:
            self._vectors.fill(waiting)
            self._writer.store(waiting, edges, deleted=gone, notes=notes)
        self._report.embedded = self._vectors.embedded
        self._report.reused = self._vectors.reused

    def stored(self, keys: Sequence[str]) -> dict[str, Values]:
        """Return those of the rows that are in the index."""
        # The columns of the rows with given ids; of the vector, whether there is one.
        statement = sql.SQL(
            "SELECT {}, embedding IS NOT NULL AS embedding FROM search_docs "
            "WHERE vector_id = ANY(%(keys)s)"
        ).format(sql.SQL(", ").join(map(sql.Identifier, records.COLUMNS)))
        with self._writer.connection.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(statement, {"keys": list(keys)}).fetchall()
        return {row["vector_id"]: row for row in found}

    def ids(self, type: str) -> set[str]:
        """Return the ids of the repository's rows of a type."""
        # The ids of a repository's rows of one type.
        found = self._writer.connection.execute(
            "SELECT vector_id FROM search_docs WHERE repo = %(repo)s AND type = %(type)s",
            {"repo": self._repo, "type": type},
        )
        return {key for (key,) in found.fetchall()}

    def _row(self, item: Item) -> Values | None:
        notes = self._report.notes
        if item.record is None:
            notes.add(f"left out: {item.left_out}", item.name)
            return None
        try:
            return records.parse_row(
                item.record, dimensions=self._writer.dimensions, repairs=self._report.repairs
            )
        except BadRecord as error:
            notes.add(f"not stored: {error}", item.name)
            return None

    def _differs(self, row: Values, stored: Values | None) -> bool:
        if stored is None or any(row[name] != stored[name] for name in records.COLUMNS):
            return True
        return self._embed and not stored["embedding"] and bool(row["content"].strip())
