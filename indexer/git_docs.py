"""The documents of a branch: which files of its tree they are, since when they read as they do."""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from indexer.git import Repository
from indexer.git_history import SUBMODULE, Commit, Objects, changes, read_commit, vector_id
from indexer.git_text import decode, decode_path, is_binary
from indexer.records import MAX_CONTENT, Repairs, clean

SYMBOLIC_LINK: Final = b"120000"
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Doc:
    """A document of the tree: its path and the name of its content."""

    path: str
    blob: str


def pattern_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return what matches the file names that shell patterns name, upper or lower case alike."""
    return re.compile("|".join(fnmatch.translate(pattern.lower()) for pattern in patterns) or "$^")


def documents(
    repository: Repository, commit: str, names: re.Pattern[str], repairs: Repairs
) -> list[Doc]:
    """Return the documents in the tree of a commit; links and submodules are none."""
    found: dict[str, Doc] = {}
    with repository.stream("ls-tree", "-r", "-z", "--full-tree", commit) as stream:
        while stream.peek(1):
            facts, _, raw_path = stream.token().partition(b"\t")
            mode, _, blob = facts.split(b" ")
            if mode == SUBMODULE or not _is_named(raw_path, names):
                continue
            if mode == SYMBOLIC_LINK:
                repairs.count("symbolic link skipped as a document")
            elif (path := decode_path(raw_path, repairs)) is not None:
                found[path] = Doc(path, blob.decode("ascii"))
    return list(found.values())


def last_changes(
    repository: Repository,
    commit: str,
    *,
    names: re.Pattern[str],
    skipped: frozenset[str],
    objects: Objects,
) -> dict[str, datetime]:
    """Return for each document of the history when it was changed last.

    That is the author's date of the newest commit, by the time of committing, among all that lead
    to `commit` and changed the file. It depends on the set of commits alone, not on the order in
    which they were indexed. Commits in `skipped` are left out: where a shallow clone was cut,
    every file looks new.
    """
    newest: dict[bytes, tuple[datetime, str, datetime | None]] = {}
    current: Commit | None = None
    with changes(repository, [commit], patches=False) as all_changes:
        for change in all_changes:
            if change.commit in skipped or not _is_named(change.path, names):
                continue
            if current is None or current.sha != change.commit:
                current = read_commit(change.commit, objects.read(change.commit), Repairs())
            facts = (current.committed or _LONG_AGO, current.sha, current.date)
            newest[change.path] = max(newest.get(change.path, facts), facts, key=lambda f: f[:2])
    return {
        path.decode("utf-8", "surrogateescape"): date
        for path, (_, _, date) in newest.items()
        if date
    }


def doc_record(
    repo: str, doc: Doc, objects: Objects, dates: Mapping[str, datetime], repairs: Repairs
) -> dict[str, Any] | None:
    """Return the record of a document, None (counted) for a binary file."""
    data = objects.read(doc.blob)
    if is_binary(data):
        repairs.count("binary file skipped as a document")
        return None
    date = dates[doc.path].isoformat() if doc.path in dates else None
    text = clean(decode(data, repairs, "document"), repairs)
    return {
        "vector_id": doc_id(repo, doc.path),
        "repo": repo,
        "type": "doc",
        "state": "active",
        "created_at": date,
        "updated_at": date,
        "doc_path": doc.path,
        "title": doc.path,
        "content": f"{doc.path}\n\n{text}"[:MAX_CONTENT],
    }


def doc_id(repo: str, path: str) -> str:
    """Return the id of a document's row."""
    return vector_id("d", repo, path)


def _is_named(path: bytes, names: re.Pattern[str]) -> bool:
    return names.match(path.rpartition(b"/")[2].decode("utf-8", "replace").lower()) is not None
