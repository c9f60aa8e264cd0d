"""What is indexed of a git repository, and how far that has come.

The owner's state holds a mark for each repository and branch: the commit up to which the history
is indexed, the commits towards which runs have begun since, and how far the last of them came.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from indexer.errors import BadSource
from indexer.git import Repository, lines_of
from indexer.store import Writer

_REPO: Final = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True, slots=True)
class GitSource:
    """A branch of a repository, the name that its rows get, and how far back the first run reads.

    Of commits before `since` and beyond the newest `max_commits` no diff row is made.
    """

    repository: Repository
    repo: str
    branch: str
    tip: str
    since: datetime | None = None
    max_commits: int | None = None

    @property
    def about(self) -> str:
        """What index_info calls this source."""
        return f"git history: {self.repo}"


def git_source(
    path: Path,
    *,
    repo: str | None = None,
    branch: str | None = None,
    since: datetime | None = None,
    max_commits: int | None = None,
) -> GitSource:
    """Return the branch of the repository at `path`; raises BadSource where there is none.

    `repo` is by default owner/name of the GitHub repository it was cloned from, else
    local/<folder>; `branch` the one that is checked out.
    """
    repository = Repository.at(path)
    folder = re.sub(r"[^\w.-]", "-", repository.name)
    name = repo or repository.github_name() or f"local/{folder}"
    if not _REPO.fullmatch(name):
        raise BadSource(f"{name!r} is no repository's name; it must be owner/name.")
    branch, tip = repository.branch(branch)
    return GitSource(repository, name, branch, tip, since, max_commits)


class Mark:
    """The mark of a branch; it is moved by the notes that go with each batch."""

    def __init__(self, writer: Writer, source: GitSource) -> None:
        self.shallow = source.repository.shallow_commits()
        self._connection = writer.connection
        self._source = source
        self._prefix = f"git:{source.repo}:"
        self._key = self._prefix + source.branch
        self._stored: Mapping[str, Any] = {} if writer.fresh else writer.recall(self._key) or {}
        # What decides, beside the branch, which commits are read.
        self._scope = {
            "since": source.since.isoformat() if source.since else None,
            "max_commits": source.max_commits,
            "shallow": fingerprint(self.shallow),
        }
        known = self._stored.get("commit") if self._stored.get("scope") == self._scope else None
        self._base = known and source.repository.commit_of(known)
        self._selection = self._select()

    @property
    def reached(self) -> bool:
        """Whether the history of the branch is indexed, and nothing else was begun."""
        return self._base == self._source.tip and not self._stored.get("begun")

    def remaining(self) -> tuple[list[str], int, int]:
        """Return what rev-list is to select, how many commits come before, and how many in all."""
        count = self._source.repository.run("rev-list", "--count", *self._selection)
        total = min(int(count), self._source.max_commits or int(count))
        progress = self._stored.get("progress") or {}
        done = progress["done"] if progress.get("selection") == self._selection else 0
        return [*self._selection, f"--max-count={total - done}"], done, total

    def notes_at(self, done: int) -> dict[str, Any]:
        """Return what to remember with a batch after which `done` commits are stored whole."""
        begun = dict.fromkeys([*self._stored.get("begun", ()), self._source.tip])
        progress = {"selection": self._selection, "done": done}
        return {self._key: {**self._stored, "begun": list(begun), "progress": progress}}

    def notes_at_end(self) -> dict[str, Any]:
        """Return what to remember when the history of the branch is indexed."""
        return {self._key: {"commit": self._source.tip, "scope": self._scope}}

    def lost_rows(self) -> list[str]:
        """Return the ids of the diff rows whose commits lead to no indexed branch any more.

        None in a shallow clone, which cannot tell a commit that is gone from one it was not given.
        """
        if self.shallow:
            return []
        repository = self._source.repository
        heads = [self._stored.get("commit"), *self._stored.get("begun", ())]
        known = [head for head in heads if head and repository.commit_of(head)]
        kept = [self._source.tip, *filter(repository.commit_of, self._other_heads())]
        lost = set(lines_of(repository.run("rev-list", *known, "--not", *kept))) if known else set()
        if len(known) < len(list(filter(None, heads))):
            # Another clone, which never had the commit of the mark: compare with what is stored.
            lost |= self._stored_commits() - set(lines_of(repository.run("rev-list", *kept)))
        # The ids of the diffs of some commits.
        found = self._connection.execute(
            """
            SELECT vector_id FROM search_docs
             WHERE repo = %(repo)s AND type = 'diff' AND commit_sha = ANY(%(commits)s)
            """,
            {"repo": self._source.repo, "commits": sorted(lost)},
        )
        return [key for (key,) in found.fetchall()]

    def _select(self) -> list[str]:
        selection = [self._source.tip]
        if self._base:
            selection.append(f"^{self._base}")
        if self._source.since:
            selection.append(f"--max-age={int(self._source.since.timestamp())}")
        return selection

    def _other_heads(self) -> list[str]:
        """Return the commits of the marks of the repository's other branches."""
        # The marks of all branches but this one.
        found = self._connection.execute(
            """
            SELECT value FROM indexer_state
             WHERE starts_with(key, %(prefix)s) AND key <> %(key)s
            """,
            {"prefix": self._prefix, "key": self._key},
        )
        marks = [mark for (mark,) in found.fetchall()]
        heads = [head for mark in marks for head in (mark.get("commit"), *mark.get("begun", ()))]
        return [head for head in heads if head]

    def _stored_commits(self) -> set[str]:
        # The commits that have a diff row.
        found = self._connection.execute(
            "SELECT DISTINCT commit_sha FROM search_docs WHERE repo = %(repo)s AND type = 'diff'",
            {"repo": self._source.repo},
        )
        return {commit for (commit,) in found.fetchall()}


def fingerprint(commits: frozenset[str]) -> str:
    """Return a short text that tells one set of commits from another; empty for the empty set."""
    return hashlib.sha256(" ".join(sorted(commits)).encode()).hexdigest() if commits else ""
