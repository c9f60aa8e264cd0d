"""Fixtures: the command, and files of a deployment made for a test."""

import json
from collections.abc import Callable, Iterable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.indexer_import import generator
from tests.postgres import DIMENSIONS, MODEL, TestIndex

EMPTIED = "search_docs, doc_edges, index_info, term_frequencies, indexer_state"
VECTOR = [3.0, 4.0] + [0.0] * (DIMENSIONS - 2)


class Deployment:
    """A reference deployment's files in the making; `run` imports them."""

    def __init__(self, folder: Path, index: TestIndex) -> None:
        self.folder = folder
        self.index = index
        self.rows: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.vectors: list[Any] = []
        self.records: list[Any] = []
        self.sql = ""

    def row(self, vector_id: str, *, vector: Any = VECTOR, **fields: Any) -> None:
        """Add an issue of acme/app to D1, unless `fields` say otherwise, and its vector."""
        row = {
            "vector_id": vector_id, "repo": "acme/app", "type": "issue", "state": "open",
            "number": 1, "content": "Title\n\nBody", "updated_at": "2026-01-02T03:04:05Z",
        }  # fmt: skip
        self.rows.append({**dict.fromkeys(generator.COLUMNS, ""), **row, **fields})
        if vector is not None:
            self.vector(vector_id, vector)

    def vector(self, vector_id: Any, values: Any = VECTOR, **metadata: Any) -> None:
        self.vectors.append({"id": vector_id, "values": values, "metadata": metadata})

    def run(self, **options: Any) -> tuple[int, str, str]:
        """Return exit code, standard output and standard error of the command."""
        statements = [f"{text};" for text in generator.SCHEMA.values()]
        for table, rows in (("search_docs", self.rows), ("doc_edges", self.edges)):
            statements += [generator.insert(table, row) for row in rows]
        files = {
            "d1": self._write("export.sql", "\n".join(statements) + "\n" + self.sql),
            "vectors": self._write("vectors.ndjson", self._lines(self.vectors)),
            "records": self._write("records.ndjson", self._lines(self.records)),
        }
        return command(**{"model": MODEL, **files, **options})

    def stored(self, columns: str, table: str = "search_docs") -> list[tuple[Any, ...]]:
        return self.index.execute(f"SELECT {columns} FROM {table} ORDER BY 1")

    def _write(self, name: str, text: str) -> list[Path]:
        path = self.folder / name
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return [path]

    def _lines(self, records: Iterable[Any]) -> str:
        return "".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in records)


def command(**options: Any) -> tuple[int, str, str]:
    """Run index_import; returns (exit code, standard output, standard error)."""
    out, err = StringIO(), StringIO()
    try:
        call_command("index_import", stdout=out, stderr=err, **options)
    except CommandError as error:
        return error.returncode, out.getvalue(), err.getvalue() + str(error)
    return 0, out.getvalue(), err.getvalue()


@pytest.fixture(scope="session")
def shared_index(make_index: Callable[[], TestIndex]) -> TestIndex:
    """One index for all: many small tests would make and drop as many databases."""
    return make_index()


@pytest.fixture
def deployment(
    shared_index: TestIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    shared_index.execute(f"TRUNCATE {EMPTIED}")
    monkeypatch.setenv("INDEX_OWNER_URL", shared_index.owner_url)
    return Deployment(tmp_path, shared_index)
