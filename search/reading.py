"""The transaction in which an answer is read from the index, and what goes wrong with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import (
    DatabaseError,
    DataError,
    InterfaceError,
    ProgrammingError,
    connections,
    transaction,
)
from django.db.backends.utils import CursorWrapper

from ingest_readonly.routers import INDEX
from search import conf
from search.errors import IndexUnavailable

# Returns one row: whether the index was ever written. Bounds the time of each later statement.
_BOUNDED: Final = """
SELECT set_config('statement_timeout', %(timeout)s, true),
       EXISTS (SELECT FROM index_info) AS written
"""


@contextmanager
def index_snapshot() -> Iterator[CursorWrapper]:
    """Open the read-only, repeatable-read transaction of one answer; raises IndexUnavailable."""
    try:
        with transaction.atomic(using=INDEX), connections[INDEX].cursor() as cursor:
            yield cursor
    except ProgrammingError as error:
        raise IndexUnavailable(
            "The index has no tables yet, or not those of the contract: run manage.py check."
        ) from error
    except DataError as error:
        raise IndexUnavailable(
            "The index holds a value that cannot be read: " + str(error).partition("\n")[0]
        ) from error
    except (DatabaseError, InterfaceError) as error:
        raise IndexUnavailable from error


@contextmanager
def bounded_snapshot() -> Iterator[CursorWrapper]:
    """Open it for an answer that ranks nothing: statements are bounded, an empty index refused.

    Raises IndexUnavailable.
    """
    with index_snapshot() as cursor:
        cursor.execute(_BOUNDED, {"timeout": str(conf.get("SEARCH_STATEMENT_TIMEOUT_MS"))})
        _, written = cursor.fetchone() or ("", False)
        if not written:
            raise IndexUnavailable("The index is empty: nothing has been loaded yet.")
        yield cursor
