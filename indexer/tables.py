"""The tables and indexes of an index: `schema.sql`, run as a whole or in its two parts."""

from importlib import resources
from typing import Any, Final, cast

import psycopg

from indexer.errors import IndexerError

_INDEXES_FOLLOW: Final = "-- indexes:"
# Slow to fill row by row.
BUILT_LAST: Final = (
    "search_docs_embedding",
    "search_docs_content_tsv",
    "search_docs_title_tsv",
    "search_docs_content_bm25",
    "search_docs_title_bm25",
)

# The owner's own notes: unfinished writes and the progress of loads. Readers have no right to it.
_STATE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS indexer_state (
    key text PRIMARY KEY, value jsonb NOT NULL, written_at timestamptz NOT NULL DEFAULT now()
)
"""


def connect(url: str) -> psycopg.Connection:
    """Connect as the owner, in autocommit mode; raises IndexerError naming the remedy."""
    try:
        return psycopg.connect(url, autocommit=True, application_name="indexer")
    except psycopg.OperationalError as error:
        raise IndexerError(f"cannot reach the index database (INDEX_OWNER_URL): {error}") from error


def create(connection: psycopg.Connection, dimensions: int, *, with_indexes: bool) -> None:
    """Create what is missing of the tables, roles and grants, and of the indexes if wanted."""
    script = resources.files("indexer").joinpath("schema.sql").read_text()
    tables, _, indexes = script.replace(":dimensions", str(int(dimensions))).partition(
        _INDEXES_FOLLOW
    )
    connection.execute(cast(Any, tables))
    connection.execute(cast(Any, _STATE_TABLE))
    if with_indexes:
        connection.execute(cast(Any, f"--{indexes}"))
    connection.execute("RESET ROLE")


def has_table(connection: psycopg.Connection, name: str) -> bool:
    """Return whether the database has a table."""
    row = connection.execute("SELECT to_regclass(%s)", [name]).fetchone()
    return row is not None and row[0] is not None
