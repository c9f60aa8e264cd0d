"""Fixtures: GitHub, an index, and what brings the one into the other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer import store
from indexer.git import Repository
from indexer.github_client import GitHub
from indexer.github_report import GitHubReport
from indexer.github_sync import github_source, index_github
from tests.fakes.github_api import GitHubApi
from tests.indexer_git.embedders import Hashed
from tests.postgres import TestIndex

NAME = "acme/app"
COLUMNS = (
    "vector_id, repo, type, state, labels, milestone, assignees, created_at, updated_at, number, "
    "tag_name, doc_path, wiki_extension, commit_sha, file_path, author, comment_id, review_id, "
    "line, title, title_fts, content, content_fts, embedding::text"
)
Rows = list[tuple[Any, ...]]


def rows_of(index: TestIndex) -> Rows:
    """Every column but the time of indexing, by id."""
    return index.execute(f"SELECT {COLUMNS} FROM search_docs ORDER BY vector_id")


class Clients:
    """Makes clients of GitHub that do not sleep; `waits` remembers how long they would have."""

    def __init__(self, api: GitHubApi) -> None:
        self.api = api
        self.waits: list[tuple[float, str]] = []

    def client(self, *, max_wait: float = 4000, token: str = "") -> GitHub:
        return GitHub(
            self.api.url,
            token,
            max_wait=max_wait,
            on_wait=lambda seconds, reason: self.waits.append((seconds, reason)),
            sleep=lambda seconds: None,
            first_retry_s=0.001,
            page_size=self.api.page_size,
        )


class Indexed(Clients):
    """An index and the ways to fill it from GitHub and to look into it."""

    def __init__(self, index: TestIndex, api: GitHubApi) -> None:
        super().__init__(api)
        self.index = index
        self.backend = Hashed()

    def run(
        self, *, name: str = NAME, wiki: Path | None = None, max_wait: float = 4000, **options: Any
    ) -> GitHubReport:
        repository = Repository.at(wiki) if wiki else None
        backend = options.pop("backend", self.backend)
        with self.client(max_wait=max_wait) as github:
            source = github_source(github, name)
            return index_github(
                github, source, self.index.owner_url, backend, wiki=repository, **options
            )

    def rows(self) -> Rows:
        return rows_of(self.index)

    def edges(self) -> Rows:
        """The mentions, by the slugs of their ends."""
        return self.index.execute(
            "SELECT src_vector_id, dst_vector_id, src_slug, dst_slug, repo, edge_kind, updated_at"
            " FROM doc_edges ORDER BY src_slug, dst_slug"
        )

    def contents(self, type: str) -> set[str]:
        found = self.index.execute("SELECT content FROM search_docs WHERE type = %s", type)
        return {content for (content,) in found}

    def one(self, columns: str, **where: Any) -> tuple[Any, ...]:
        """The columns of the only row that `where` describes."""
        condition = " AND ".join(f"{name} = %s" for name in where)
        found = self.index.execute(
            f"SELECT {columns} FROM search_docs WHERE {condition}", *where.values()
        )
        assert len(found) == 1, found
        return found[0]

    def noted(self, report: GitHubReport) -> dict[str, int]:
        return {kind: noted.count for kind, noted in report.notes.kinds.items()}


def difference(some: Rows, others: Rows) -> list[tuple[Any, ...]]:
    """The rows that are in one of two indexes only, without their vectors."""
    return sorted(row[:-1] for row in set(map(_hashable, some)) ^ set(map(_hashable, others)))


def _hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


@pytest.fixture
def api() -> Iterator[GitHubApi]:
    with GitHubApi(NAME) as server:
        yield server


@pytest.fixture
def clients(api: GitHubApi) -> Clients:
    return Clients(api)


@pytest.fixture(scope="module")
def indexes() -> list[TestIndex]:
    """The indexes of a module's tests; to empty one takes less time than to drop it."""
    return []


@pytest.fixture
def empty_index(
    make_index: Callable[[], TestIndex], indexes: list[TestIndex]
) -> Callable[[], TestIndex]:
    """A function that returns an empty index."""
    unused = iter(indexes.copy())

    def empty() -> TestIndex:
        if index := next(unused, None):
            with store.connect(index.owner_url) as connection:
                connection.execute("DROP TABLE IF EXISTS indexer_state")
                connection.execute("TRUNCATE search_docs, doc_edges, index_info, term_frequencies")
            return index
        indexes.append(make_index())
        return indexes[-1]

    return empty


@pytest.fixture
def indexed(empty_index: Callable[[], TestIndex], api: GitHubApi) -> Indexed:
    return Indexed(empty_index(), api)


@pytest.fixture
def scratch(empty_index: Callable[[], TestIndex], api: GitHubApi) -> Callable[[], Rows]:
    """A function that indexes the repository from scratch and returns the rows."""

    def rows() -> Rows:
        fresh = Indexed(empty_index(), api)
        fresh.run()
        return fresh.rows()

    return rows
