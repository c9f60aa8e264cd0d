"""System checks of the mirror: is the index what the application expects, and can it not write?

They read the index database, so they run with `manage.py check --database index` and before
`runserver` or a deployment, not at every command. What they compare with comes from the settings
INDEX_EXPECTATIONS, a dotted path of a function, since the mirror imports nothing of the search.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import DatabaseError, connections
from django.utils.module_loading import import_string

from ingest_readonly.models import MIRRORED
from ingest_readonly.routers import INDEX

CONTRACT_VERSION: Final = 1
# Tables whose only right for the application is to read them.
_TABLES: Final = ("search_docs", "doc_edges", "index_info", "term_frequencies")

# Returns the tables, of those of the contract, that are there.
_PRESENT = (
    "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND relkind IN ('r', 'v', 'm', 'p')"
)

# Returns the tables on which the role holds any right beyond SELECT, and how it may write at all.
_WRITABLE = """
SELECT name FROM unnest(%s::text[]) AS name
 WHERE has_table_privilege(name, 'INSERT') OR has_table_privilege(name, 'UPDATE')
    OR has_table_privilege(name, 'DELETE') OR has_table_privilege(name, 'TRUNCATE')
"""
_ROLE = """
SELECT current_user, rolsuper, current_setting('default_transaction_read_only')
  FROM pg_roles WHERE rolname = current_user
"""


@register(Tags.database)
def check_index(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check the index database, when it is among those asked for."""
    if INDEX not in (databases or ()):
        return []
    try:
        with connections[INDEX].cursor() as cursor:
            return [message for check in _CHECKS for message in check(cursor)]
    except DatabaseError as error:
        return [
            Error(
                f"The index database does not answer: {str(error).strip()}",
                hint="Look at INDEX_DATABASE_URL, and whether manage.py index_init has been run.",
                id="ingest_readonly.E001",
            )
        ]


def _tables(cursor: Any) -> list[CheckMessage]:
    cursor.execute(_PRESENT, [list(_TABLES)])
    missing = sorted(set(_TABLES) - {name for (name,) in cursor.fetchall()})
    if not missing:
        return []
    return [
        Error(
            f"The index has no table {', '.join(missing)}.",
            hint="Run manage.py index_init with the owner's URL.",
            id="ingest_readonly.E002",
        )
    ]


def _columns(cursor: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for model in MIRRORED:
        table = model._meta.db_table
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table]
        )
        present = {name for (name,) in cursor.fetchall()}
        missing = [str(f.column) for f in model._meta.concrete_fields if f.column not in present]
        if present and missing:
            found.append(
                Error(
                    f"The table {table} has no column {', '.join(missing)}.",
                    hint="The index follows another contract: see docs/index-contract.md.",
                    id="ingest_readonly.E003",
                )
            )
    return found


def _rights(cursor: Any) -> list[CheckMessage]:
    cursor.execute(_ROLE)
    role, superuser, read_only = cursor.fetchone()
    cursor.execute(_PRESENT, [list(_TABLES)])
    cursor.execute(_WRITABLE, [[name for (name,) in cursor.fetchall()]])
    writable = [name for (name,) in cursor.fetchall()]
    if not superuser and not writable and read_only == "on":
        return []
    return [
        Error(
            f"The role {role} may write the index"
            + (f" ({', '.join(writable)})." if writable else "."),
            hint="INDEX_DATABASE_URL must use rag_reader, or a role with SELECT alone and "
            "default_transaction_read_only = on.",
            id="ingest_readonly.E004",
        )
    ]


def _extensions(cursor: Any) -> list[CheckMessage]:
    cursor.execute("SELECT extname, extversion FROM pg_extension")
    versions = dict(cursor.fetchall())
    found: list[CheckMessage] = []
    major, minor = [*versions.get("vector", "0.0").split("."), "0"][:2]
    if (int(major), int(minor)) < (0, 8):
        found.append(
            Error(
                f"The index has pgvector {versions.get('vector', '(missing)')}.",
                hint="pgvector 0.8 or later is needed: filtered searches rely on iterative scans.",
                id="ingest_readonly.E005",
            )
        )
    if "pg_textsearch" not in versions:
        found.append(
            CheckWarning(
                "The index has no pg_textsearch: PostgreSQL's full-text search answers, slower.",
                hint="See docs/decisions/bm25-engine.md; silence W001 if that is meant.",
                id="ingest_readonly.W001",
            )
        )
    return found


def _built_with(cursor: Any) -> list[CheckMessage]:
    cursor.execute(_PRESENT, [["index_info"]])
    if not cursor.fetchall():
        return []
    cursor.execute(
        "SELECT contract_version, embedding_model, dimensions, normaliser_version FROM index_info"
    )
    row = cursor.fetchone()
    if row is None:
        return [
            CheckWarning(
                "The index is empty.",
                hint="Load it: manage.py index_load SNAPSHOT.",
                id="ingest_readonly.W002",
            )
        ]
    actual = dict(
        zip(
            ("contract_version", "embedding_model", "dimensions", "normaliser_version"),
            row,
            strict=True,
        )
    )
    expected = {"contract_version": CONTRACT_VERSION, **_expectations()}
    return [
        Error(
            f"The index has {name.replace('_', ' ')} {actual[name]}, the settings ask for {value}.",
            hint=_HINTS[name],
            id="ingest_readonly.E006",
        )
        for name, value in expected.items()
        if actual[name] != value
    ]


_HINTS: Final = {
    "contract_version": "Use a version of this application that reads that contract.",
    "embedding_model": "Set SEARCH_EMBEDDER to the index's model, or embed the index again.",
    "dimensions": "Set SEARCH_EMBEDDER to the index's model, or embed the index again.",
    "normaliser_version": "Load the index again with this version's manage.py index_load.",
}

_CHECKS: Final[tuple[Callable[[Any], list[CheckMessage]], ...]] = (
    _tables,
    _columns,
    _rights,
    _extensions,
    _built_with,
)


def _expectations() -> dict[str, Any]:
    path = getattr(settings, "INDEX_EXPECTATIONS", "")
    return dict(import_string(path)()) if path else {}
