"""The history of a repository as rows: one for each file with a textual change in each commit."""

import base64
import hashlib
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Final

from indexer.byte_stream import ByteStream
from indexer.errors import BadSource
from indexer.git import Repository
from indexer.git_patch import PATCHES, RAW, Change, read_changes
from indexer.git_text import decode, decode_as, decode_path, moment
from indexer.records import Repairs

SUBMODULE: Final = b"160000"
# The same commits come in the same order, so that a count says how far a run has come.
_ORDER: Final = ("--topo-order", "--reverse")
# The words of GitHub's API for the letters of git.
_STATUS: Final = {
    "A": "added",
    "M": "modified",
    "D": "removed",
    "R": "renamed",
    "C": "copied",
    "T": "changed",
}
# `author Name <address> seconds zone`; each part may be missing or nonsense.
_PERSON: Final = re.compile(rb"(?P<name>[^<]*)(?:<.*>)? ?(?P<seconds>-?\d{1,20})?(?: .*)?")


@dataclass(frozen=True, slots=True)
class Commit:
    """What the rows say of a commit; `committed` orders commits by time."""

    sha: str
    message: str
    author: str
    date: datetime | None
    committed: datetime | None


class Objects:
    """Objects of a repository by their names, from one `git cat-file --batch`."""

    def __init__(self, requests: IO[bytes], answers: ByteStream) -> None:
        self._requests = requests
        self._answers = answers

    def read(self, name: str) -> bytes:
        """Return the first MOST_BYTES of an object; raises BadSource if it is missing."""
        try:
            self._requests.write(name.encode("ascii") + b"\n")
            answer = self._answers.line().split()
            if len(answer) != 3:  # noqa: PLR2004 (name, type, size; else: name, "missing")
                raise BadSource(f"The object {name} is missing from the repository.")
            data = self._answers.take(int(answer[2]))
            self._answers.line()
        except (BrokenPipeError, EOFError):
            raise BadSource(f"git ended while it read the object {name}.") from None
        return data


@contextmanager
def objects(repository: Repository) -> Iterator[Objects]:
    """Yield a reader of the repository's objects."""
    with repository.process("cat-file", "--batch", stdin=subprocess.PIPE) as process:
        if process.stdin is None or process.stdout is None:  # only for the type checker
            raise BadSource
        yield Objects(process.stdin, ByteStream(process.stdout))


@contextmanager
def changes(
    repository: Repository, selection: list[str], *, patches: bool
) -> Iterator[Iterator[Change]]:
    """Yield the changes of the commits that `git rev-list` selects, parents before children.

    Without `patches` those of a merge are the files that differ from every parent.
    """
    options = PATCHES if patches else (*RAW, "-c")
    with (
        repository.process("rev-list", *_ORDER, *selection, stdin=subprocess.DEVNULL) as commits,
        repository.stream("diff-tree", *options, stdin=commits.stdout) as stream,
    ):
        yield read_changes(stream, patches=patches)


def read_commit(sha: str, data: bytes, repairs: Repairs) -> Commit:
    """Return what a commit object says, whatever is wrong with it."""
    head, _, body = data.partition(b"\n\n")
    fields: dict[bytes, bytes] = {}
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        fields.setdefault(key, value)
    author = _PERSON.fullmatch(fields.get(b"author", b""))
    committer = _PERSON.fullmatch(fields.get(b"committer", b""))
    encoding = fields.get(b"encoding", b"utf-8").decode("ascii", "replace")
    return Commit(
        sha=sha,
        message=decode_as(body, encoding, repairs).strip(),
        author=decode_as(author["name"].strip(), encoding, repairs) if author else "",
        date=moment(_seconds(author), repairs),
        committed=moment(_seconds(committer), Repairs()),
    )


def vector_id(prefix: str, *parts: str) -> str:
    """Return the id of a row: its prefix and the hash of what names it."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return f"{prefix}:{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def row_path(change: Change, repairs: Repairs) -> str | None:
    """Return the path under which a change has a row, None (counted) where it has none."""
    if SUBMODULE in change.modes:
        repairs.count("submodule skipped")
    elif change.binary:
        repairs.count("binary change skipped")
    elif not change.patch:
        # A merge that changed nothing itself in this file has been said by the commits it joins.
        if len(change.letters) == 1:
            repairs.count("change without a textual patch skipped")
    else:
        return decode_path(change.path, repairs)
    return None


def diff_record(
    repo: str, path: str, change: Change, commit: Commit, repairs: Repairs
) -> dict[str, Any]:
    """Return the record of one changed file: message, path and patch."""
    date = commit.date.isoformat() if commit.date else None
    patch = decode(change.patch, repairs, "patch")
    return {
        "vector_id": diff_id(repo, change.commit, path),
        "repo": repo,
        "type": "diff",
        "state": "active",
        "created_at": date,
        "updated_at": date,
        "commit_sha": change.commit,
        "file_path": path,
        "file_status": _STATUS.get(change.letters[0], "changed"),
        "commit_date": date,
        "commit_author": commit.author,
        "title": f"{change.commit[:7]} {path}",
        "content": "\n\n".join(part for part in (commit.message, path, patch) if part),
    }


def diff_id(repo: str, commit: str, path: str) -> str:
    """Return the id of a diff row."""
    return vector_id("c", repo, commit, path)


def _seconds(person: re.Match[bytes] | None) -> str:
    return (person["seconds"] or b"").decode("ascii") if person else ""
