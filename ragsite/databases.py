"""Where the databases come from: URLs in the environment or, in development, an embedded server.

Importing the settings never starts a server. `manage.py` calls `provide_embedded` first, for
commands that need a database; what it finds out travels in the environment, so that child
processes (the reloader of `runserver`) use the same server.
"""

import importlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import dj_database_url
import psycopg
from django.core.exceptions import ImproperlyConfigured
from dotenv import load_dotenv
from psycopg import IsolationLevel, sql

BASE_DIR: Final = Path(__file__).resolve().parent.parent

# Valid, so that settings can be imported without a server, and impossible to connect to.
PLACEHOLDER_URL: Final = "postgresql://unset@127.0.0.1:1/unset"

# Commands that read no database; any other gets one.
WITHOUT_DATABASE: Final = frozenset(
    {
        "help",
        "version",
        "check",
        "collectstatic",
        "compilemessages",
        "diffsettings",
        "findstatic",
        "makemessages",
        "spectacular",
        "startapp",
        "test",
    }
)

# Dimensions of the embedding model that the project bundles.
EMBEDDED_DIMENSIONS: Final = 384

# A request waits this long for a free connection before it fails.
_POOL_TIMEOUT_SECONDS: Final = 10


def provide_embedded(argv: Sequence[str]) -> None:
    """Start the embedded server and set the database URLs that the environment leaves out.

    Does nothing in production, for a command that needs no database, or where both URLs are set.
    """
    read_dotenv()
    if os.environ.get("ENVIRONMENT") != "development" or not _needs_database(argv):
        return
    index_is_embedded = not os.environ.get("INDEX_DATABASE_URL")
    if os.environ.get("DATABASE_URL") and not index_is_embedded:
        return
    embedded = importlib.import_module("ragsite.embedded")
    try:
        server = embedded.ensure_running(BASE_DIR / "var" / "postgres")
    except embedded.EmbeddedError as error:
        raise ImproperlyConfigured(str(error)) from error
    superuser_url = server.url("postgres", "postgres")
    _create_database(superuser_url, "ragsite", owner="ragsite")
    _create_database(superuser_url, "rag_index", owner=None, roles=("rag_owner", "rag_reader"))
    _set_if_empty("DATABASE_URL", server.url("ragsite", "ragsite"))
    if index_is_embedded:
        index_bootstrap(server.url("rag_index", "postgres"))
        _set_if_empty("INDEX_DATABASE_URL", server.url("rag_index", "rag_reader"))
        _set_if_empty("INDEX_OWNER_URL", server.url("rag_index", "rag_owner"))


def index_bootstrap(superuser_url: str) -> None:
    """Create the tables of the embedded index: the owner's side does it, if it is installed.

    HOOK: `indexer.store.init_schema(url, dimensions=…)` is idempotent and grants to both roles.
    """
    if importlib.util.find_spec("indexer.store") is None:
        return
    store: Any = importlib.import_module("indexer.store")
    store.init_schema(superuser_url, dimensions=EMBEDDED_DIMENSIONS)


def read_dotenv() -> None:
    """Read the `.env` file beside manage.py, if there is one; the environment has precedence."""
    # No interpolation: a secret may hold a dollar sign.
    load_dotenv(BASE_DIR / ".env", interpolate=False)


def database(url: str, *, pool_size: int) -> dict[str, Any]:
    """Return Django's settings of the database at `url`, with a pool of up to `pool_size`.

    Raises ValueError if the URL is not one of a PostgreSQL database.
    """
    if urlsplit(url).scheme not in {"postgres", "postgresql", "pgsql"}:
        raise ValueError("must be a postgresql:// URL")
    config: dict[str, Any] = dict(
        # A pool hands out the connections, so Django must not keep any of its own.
        dj_database_url.parse(url, conn_max_age=0, conn_health_checks=True)
    )
    if not config["NAME"]:
        raise ValueError("must name a database: postgresql://user@host/database")
    if config["HOST"].startswith("/"):
        # A socket folder, percent-encoded in the place of the host, which the parser lower-cases.
        host_and_port = urlsplit(url).netloc.rpartition("@")[2]
        config["HOST"] = unquote(host_and_port.partition(":")[0])
    pool = {"min_size": 1, "max_size": pool_size, "timeout": _POOL_TIMEOUT_SECONDS}
    config["OPTIONS"] = {**config.get("OPTIONS", {}), "pool": pool}
    return config


def read_only(config: dict[str, Any]) -> dict[str, Any]:
    """Return `config` for the index: one snapshot a transaction, and no statement may write."""
    options = dict(config["OPTIONS"])
    flags = (options.get("options"), "-c default_transaction_read_only=on")
    options["options"] = " ".join(flag for flag in flags if flag)
    options["isolation_level"] = IsolationLevel.REPEATABLE_READ
    return {**config, "OPTIONS": options, "ATOMIC_REQUESTS": False}


def _needs_database(argv: Sequence[str]) -> bool:
    command, *arguments = [*argv[1:], "help"]
    if command.startswith("-") or {"-h", "--help"}.intersection(arguments):
        return False
    return command not in WITHOUT_DATABASE or any(a.startswith("--database") for a in arguments)


def _set_if_empty(name: str, value: str) -> None:
    if not os.environ.get(name):
        os.environ[name] = value


def _create_database(
    superuser_url: str, name: str, *, owner: str | None, roles: Sequence[str] = ()
) -> None:
    """Create a database, its owner and `roles` where they are missing."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        for role in (owner, *roles):
            if role and not _exists(connection, "pg_roles", "rolname", role):
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        if not _exists(connection, "pg_database", "datname", name):
            # template0: another encoding than the cluster's needs a template without text.
            statement = sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE template0 OWNER {}")
            connection.execute(
                statement.format(sql.Identifier(name), sql.Identifier(owner or "postgres"))
            )


def _exists(connection: psycopg.Connection[Any], table: str, column: str, value: str) -> bool:
    query = sql.SQL("SELECT 1 FROM {} WHERE {} = %s").format(
        sql.Identifier(table), sql.Identifier(column)
    )
    return connection.execute(query, [value]).fetchone() is not None
