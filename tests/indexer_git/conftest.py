"""Fixtures: a repository, an index, and what brings the one into the other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexer.git_index import GitReport, index_git
from indexer.git_source import git_source
from tests.indexer_git.embedders import Hashed
from tests.indexer_git.repository import GitRepository
from tests.postgres import TestIndex

NAME = "acme/app"
COLUMNS = (
    "vector_id, repo, type, state, created_at, updated_at, doc_path, commit_sha, file_path, "
    "file_status, commit_date, commit_author, title, title_fts, content, content_fts, "
    "embedding::text"
)


class Indexed:
    """An index and the ways to fill it from a repository and to look into it."""

    def __init__(self, index: TestIndex) -> None:
        self.index = index
        self.backend = Hashed()

    def run(
        self, path: Path, *, embed: bool = True, backend: Any = None, **options: Any
    ) -> GitReport:
        source = git_source(path, **{"repo": NAME, **options})
        return index_git(source, self.index.owner_url, backend or self.backend, embed=embed)

    def rows(self) -> list[tuple[Any, ...]]:
        """Every column but the time of indexing, by id."""
        return self.index.execute(f"SELECT {COLUMNS} FROM search_docs ORDER BY vector_id")

    def docs(self) -> dict[str, str]:
        """Path → content of the documents."""
        found = self.index.execute("SELECT doc_path, content FROM search_docs WHERE type = 'doc'")
        return dict(found)

    def diffs(self, commit: str | None = None) -> dict[str, str]:
        """Path → content of the diffs of a commit, or of all."""
        found = self.index.execute(
            "SELECT file_path, content FROM search_docs WHERE type = 'diff'"
            " AND commit_sha = coalesce(%s, commit_sha)",
            commit,
        )
        return dict(found)

    def one(self, columns: str, **where: str) -> tuple[Any, ...]:
        """The columns of the only row that `where` describes."""
        condition = " AND ".join(f"{name} = %s" for name in where)
        found = self.index.execute(
            f"SELECT {columns} FROM search_docs WHERE {condition}", *where.values()
        )
        assert len(found) == 1, found
        return found[0]


@pytest.fixture
def repo(tmp_path: Path) -> GitRepository:
    return GitRepository(tmp_path / "app")


@pytest.fixture(scope="module")
def shared_index(make_index: Callable[[], TestIndex]) -> TestIndex:
    return make_index()


@pytest.fixture
def indexed(shared_index: TestIndex) -> Indexed:
    """An empty index; emptied, since making and dropping a database costs more than a test."""
    shared_index.execute(
        "TRUNCATE search_docs, doc_edges, index_info, term_frequencies, indexer_state"
    )
    return Indexed(shared_index)
