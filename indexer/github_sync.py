"""Indexing a GitHub repository: what changed there since the last run, and only that.

Rows get the name that was asked for, in GitHub's spelling, also after the repository was renamed:
ids are made of the name, so another name would be a second copy of everything.

What was deleted on GitHub is on no list of changes; a full pass removes it.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from indexer import store
from indexer.embed import Vectors
from indexer.errors import BadSource, IndexerError
from indexer.git import Repository
from indexer.github_client import GitHub, Refused
from indexer.github_report import GitHubReport
from indexer.github_resources import SWEPT, OnProgress, Reader
from indexer.github_reviews import Reviews
from indexer.github_state import State
from indexer.github_store import RowStore
from indexer.store import Writer
from indexer.wiki import index_wiki
from search.embedding import Embedder

_REPO: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class GitHubSource:
    """A repository on GitHub: the name of its rows, the name it has now, its number there."""

    repo: str
    called: str
    identity: int


def github_source(github: GitHub, name: str) -> GitHubSource:
    """Return the repository of a name, or of one that it had; raises IndexerError."""
    if not _REPO.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise BadSource(f"{name!r} is no repository's name; it must be owner/name.")
    try:
        found = github.get(f"/repos/{name}").body
    except Refused as error:
        if error.status != _NOT_FOUND:
            raise
        raise BadSource(
            f"GitHub has no repository {name}, or GITHUB_TOKEN does not let it be read."
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("id"), int):
        raise BadSource(f"GitHub did not answer with a repository for {name}.")
    called = str(found.get("full_name", ""))
    if not _REPO.fullmatch(called):
        called = name
    repo = called if called.casefold() == name.casefold() else name
    return GitHubSource(repo, called, found["id"])


def index_github(
    github: GitHub,
    source: GitHubSource,
    url: str,
    backend: Embedder,
    *,
    embed: bool = True,
    full: bool = False,
    wiki: Repository | None = None,
    on_progress: OnProgress = lambda what, position, total, rows: None,
) -> GitHubReport:
    """Bring the index at `url` to the state of a repository on GitHub, and of a clone of its wiki.

    Without `embed` rows are left without a vector. With `full` everything is read again, and rows
    of what is gone are deleted. `on_progress` is told what is being read, how far of how much, and
    the rows stored. Raises Incompatible before anything is written when the index holds vectors of
    another model, LimitReached when GitHub's rate limit lasts too long, IndexerError when GitHub or
    the backend fails; what was stored until then can be searched.
    """
    model, dimensions = backend.model, backend.dimensions
    if not embed:
        with store.connect(url) as connection:
            model, dimensions = store.describe(connection) or (model, dimensions)
    about = f"GitHub: {source.repo}"
    with Writer(url, embedding_model=model, dimensions=dimensions, source=about) as writer:
        report = GitHubReport(source.repo, writer.tally, source.called)
        vectors = Vectors(writer.connection, backend if embed else None)
        rows = RowStore(writer, vectors, report, source.repo, embed=embed)
        try:
            state = State(writer, source.repo, source.identity, full=full)
            for name in state.also_called():
                report.notes.add("the same repository is indexed under another name, too", name)
            if wiki:
                index_wiki(wiki, source.repo, writer, rows, report, on_progress)
            path = f"/repos/{quote(source.called)}"
            _read(Reader(github, path, source.repo, state, rows, report, on_progress), writer)
        except IndexerError:
            if writer.unfinished:
                writer.finish()
            raise
        finally:
            report.requests = github.requests
        if writer.unfinished:
            report.probe = writer.finish()
        return report


def _read(reader: Reader, writer: Writer) -> None:
    """Read all that there is, pull requests before their reviews; then end a full pass."""
    reader.issues()
    reader.try_to(reader.issue_comments, "issue comments")
    reader.try_to(reader.inline_comments, "inline comments")
    Reviews(reader, writer.connection).read()
    reader.try_to(reader.releases, "releases")
    reader.state.end(reader.state.gone(SWEPT) if reader.state.full else [])
