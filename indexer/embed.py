"""Vectors of rows: made in batches by the search's embedding backend, and never twice.

What is embedded is the beginning of `content`: most rows say there what they say, and a model cuts
long texts anyway.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from indexer import records, store
from indexer.conf import embedded_characters
from indexer.errors import IndexerError
from indexer.lexical import Probe
from indexer.records import Values
from indexer.store import Tally, Writer
from search import embedding
from search.embedding import Embedder
from search.errors import EmbeddingError

# Rows of a batch; a batch is one transaction, and what is lost when a run dies.
_FIRST_BATCH: Final = 32
_LARGEST_BATCH: Final = 512
_SECONDS: Final = 4.0  # that a batch should take
_REMEMBERED: Final = 4_000  # vectors kept in memory, of about 4 kB each
_COLUMNS: Final = (*records.COLUMNS, *records.MADE_COLUMNS)


class Batch:
    """The number of rows of the next batch, by the time that the last one took.

    A bundled model makes two or three vectors a second, a server hundreds. Use it as a context
    manager around the work on a batch.
    """

    def __init__(self) -> None:
        self.size = _FIRST_BATCH
        self._started = 0.0

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *error: object) -> None:
        seconds = time.monotonic() - self._started
        if seconds < _SECONDS / 2:
            self.size = min(2 * self.size, _LARGEST_BATCH)
        elif seconds > _SECONDS:
            self.size = max(self.size // 2, 1)


def configured() -> Embedder:
    """Return the backend that SEARCH_EMBEDDER names; raises IndexerError where it has none."""
    try:
        return embedding.embedder()
    except EmbeddingError as error:
        raise IndexerError(str(error)) from error


class Vectors:
    """Gives rows their vectors: those that are there already, and new ones from a backend.

    Without a backend only vectors that are there already are given.
    """

    def __init__(self, connection: psycopg.Connection, backend: Embedder | None) -> None:
        self.embedded = 0
        self.reused = 0
        self._connection = connection
        self._backend = backend
        self._characters = embedded_characters()
        self._remembered: OrderedDict[str, str] = OrderedDict()

    def fill(self, rows: Sequence[Values]) -> None:
        """Set `embedding` of rows; it stays None without a backend and for blank content.

        Raises IndexerError when the backend fails.
        """
        wanted = [row for row in rows if row["content"].strip()]
        self._take_own(wanted)
        for row in wanted:
            row["embedding"] = row["embedding"] or self._remembered.get(self._text(row))
        self._take_equal([row for row in wanted if row["embedding"] is None])
        self.reused += sum(row["embedding"] is not None for row in wanted)
        self._embed([row for row in wanted if row["embedding"] is None])

    def _text(self, row: Values) -> str:
        return str(row["content"][: self._characters])

    def _take_own(self, rows: Sequence[Values]) -> None:
        """Keep the vector of a row that is stored and begins as before."""
        # (id, vector) of the rows whose embedded text is the one given.
        found = self._connection.execute(
            """
            SELECT kept.vector_id, kept.embedding::text
              FROM unnest(%(ids)s::text[], %(texts)s::text[]) AS given (id, beginning)
              JOIN search_docs AS kept ON kept.vector_id = given.id
             WHERE kept.embedding IS NOT NULL
               AND left(kept.content, %(characters)s) = given.beginning
            """,
            {
                "ids": [row["vector_id"] for row in rows],
                "texts": [self._text(row) for row in rows],
                "characters": self._characters,
            },
        )
        vectors: dict[str, str] = dict(found.fetchall())
        for row in rows:
            row["embedding"] = vectors.get(row["vector_id"])

    def _take_equal(self, rows: Sequence[Values]) -> None:
        """Take the vector of another row with the same content: a commit picked or rebased."""
        # (position, vector) of given contents that some row has; found by the hash's index.
        found = self._connection.execute(
            """
            SELECT given.position, kept.embedding::text
              FROM unnest(%(contents)s::text[]) WITH ORDINALITY AS given (content, position)
             CROSS JOIN LATERAL (
                SELECT embedding FROM search_docs
                 WHERE hashtextextended(content, 0) = hashtextextended(given.content, 0)
                   AND content = given.content AND embedding IS NOT NULL
                 LIMIT 1) AS kept
            """,
            {"contents": [row["content"] for row in rows]},
        )
        for position, vector in found.fetchall():
            rows[position - 1]["embedding"] = vector

    def _embed(self, rows: Sequence[Values]) -> None:
        if self._backend is None or not rows:
            return
        texts = list(dict.fromkeys(self._text(row) for row in rows))
        vectors = dict(zip(texts, _embed(self._backend, texts), strict=True))
        self.embedded += len(texts)
        self.reused += len(rows) - len(texts)
        for row in rows:
            row["embedding"] = vectors[self._text(row)]
        self._remembered.update(vectors)
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)


def _embed(backend: Embedder, texts: Sequence[str]) -> Iterator[str]:
    """Yield the unit vectors of texts in pgvector's text form; raises IndexerError."""
    try:
        vectors = [embedding.unit(vector) for vector in backend.embed_passages(texts)]
    except Exception as error:  # a backend is somebody else's code
        raise IndexerError(f"Embedding failed: {error} Run the command again to go on.") from error
    if len(vectors) != len(texts) or {len(vector) for vector in vectors} != {backend.dimensions}:
        raise IndexerError(f"{backend.model} did not give one vector a text of its dimension.")
    yield from (records.vector_text(list(vector)) for vector in vectors)


@dataclass(slots=True)
class EmbedReport:
    """What filling in vectors did; `blank` rows have no text to embed."""

    tally: Tally
    embedded: int = 0
    reused: int = 0
    blank: int = 0
    probe: Probe | None = None


def embed_missing(
    url: str,
    backend: Embedder,
    *,
    on_progress: Callable[[int, int], None] = lambda position, rows: None,
) -> EmbedReport:
    """Give every row without a vector one, a batch a transaction; one that died can be run again.

    `on_progress` is told how many rows without a vector were read, and how many got one. Raises
    Incompatible where the index holds vectors of another model, IndexerError when the backend
    fails.
    """
    with Writer(
        url, embedding_model=backend.model, dimensions=backend.dimensions, source=""
    ) as writer:
        vectors = Vectors(writer.connection, backend)
        report = EmbedReport(writer.tally)
        read = 0
        batch = Batch()
        for rows in _rows_without_vector(writer.connection, batch):
            with batch:
                vectors.fill(rows)
                filled = [row for row in rows if row["embedding"] is not None]
                writer.store(filled)
            report.blank += len(rows) - len(filled)
            read += len(rows)
            on_progress(read, read - report.blank)
        if writer.unfinished:
            report.probe = writer.finish()
        report.embedded, report.reused = vectors.embedded, vectors.reused
        return report


def count_missing(url: str) -> int:
    """Return how many rows of the index have no vector."""
    with store.connect(url) as connection:
        if store.describe(connection) is None:
            return 0
        # The number of rows without a vector.
        row = connection.execute(
            "SELECT count(*) FROM search_docs WHERE embedding IS NULL"
        ).fetchone()
        return int(row[0]) if row else 0


def _rows_without_vector(connection: psycopg.Connection, batch: Batch) -> Iterator[list[Values]]:
    """Yield the rows in the order of their ids, a batch at a time, each row once."""
    after = ""
    while True:
        # All written columns of the next rows without a vector.
        statement = sql.SQL(
            "SELECT {} FROM search_docs WHERE embedding IS NULL AND vector_id > %(after)s "
            "ORDER BY vector_id LIMIT %(rows)s"
        ).format(sql.SQL(", ").join(map(sql.Identifier, _COLUMNS)))
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(statement, {"after": after, "rows": batch.size}).fetchall()
        if not rows:
            return
        after = rows[-1]["vector_id"]
        yield rows
