"""Which incarnation of the BM25 indexes a database connection has seen.

A PostgreSQL process that has used a BM25 index keeps a state of its own for it. When the owner
rewrites the table (VACUUM FULL) or the index (REINDEX), pg_textsearch 1.0 goes on using that state
and returns rows by their old places: an error at best, wrong rows at worst. Connections are
pooled and outlive the owner's writes, so one that has seen another file of the index is closed
and the search begins again on a new one.
"""

from weakref import WeakKeyDictionary

from django.db import connections
from psycopg import Connection

from ingest_readonly.routers import INDEX
from search.errors import SearchError


class StaleConnection(SearchError):
    """The index was rewritten since this connection first used it."""


_seen: "WeakKeyDictionary[Connection, str]" = WeakKeyDictionary()


def check(files: str) -> None:
    """Hold the current connection to the index files it has seen; raises StaleConnection.

    `files` names the files of the BM25 indexes as they are now; to be called inside the
    transaction that will use them, with a lock on the table.
    """
    connection = connections[INDEX].connection
    if _seen.setdefault(connection, files) != files:
        raise StaleConnection


def discard() -> None:
    """Close the current connection for good: it does not go back to the pool."""
    wrapper = connections[INDEX]
    if wrapper.connection is not None:
        wrapper.connection.close()
    wrapper.close()
