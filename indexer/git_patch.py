"""Reading what `git diff-tree --stdin -z --raw --patch --cc` prints.

The output is read by its structure, never by searching in it: the raw entries say which headers
of patches may come, and a hunk's header says how many lines it has. So no name of a file and no
line of its content can pass for something else.

Of a merge git shows (`--cc`) the hunks in which the result differs from every parent: what the
merge itself changed. They are given here as hunks against the first parent, like all others.
https://git-scm.com/docs/diff-format#_combined_diff_format
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from indexer.byte_stream import MOST_BYTES, ByteStream
from indexer.errors import BadSource

# What is asked of diff-tree. Said in full, since a repository has a configuration of its own.
RAW: Final = ("--stdin", "-r", "--root", "-z", "--raw", "--always", "--no-color", "--no-relative")
PATCHES: Final = (
    *RAW,
    "--patch",
    "--cc",
    "--find-renames=50%",
    "-l1000",  # of more candidates git takes only exact renames
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-textconv",
    "--no-ext-diff",
)
_HUNK: Final = re.compile(
    rb"(?P<marks>@@+) (?P<old>(?:-\d+(?:,\d+)? )+)\+(?P<new>\d+(?:,\d+)?) (?P=marks)(?P<rest>.*)",
    re.DOTALL,
)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEADERS: Final = tuple(
    b"index |old mode |new mode |mode |deleted file |new file |similarity |dissimilarity |rename "
    b"|copy |--- |+++ |Binary files ".split(b"|")
)
_LONGEST_HEADER: Final = max(map(len, _HEADERS))
_ESCAPES: Final = {
    **{code: b"\\%03o" % code for code in (*range(32), 127)},
    **{7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r"},
    **{34: b'\\"', 92: b"\\\\"},
}


@dataclass(frozen=True, slots=True)
class Change:
    """One file that a commit changed.

    `number` counts the commits from 0. `letters` has git's letter for each parent. `modes` are
    those of the parents, then that of the result. `patch` holds the hunks against the first
    parent, up to MOST_BYTES; empty where git shows none (binary, or only the name or mode).
    """

    number: int
    commit: str
    letters: str
    modes: tuple[bytes, ...]
    old_path: bytes
    path: bytes
    patch: bytes = b""
    binary: bool = False


def read_changes(stream: ByteStream, *, patches: bool) -> Iterator[Change]:
    """Yield the changed files of the commits in the stream, in its order.

    Raises EOFError where it breaks off, BadSource where it is not what diff-tree prints.
    """
    number = -1
    while stream.peek(1):
        number += 1
        commit = stream.token().decode("ascii", "replace")
        if not _COMMIT.fullmatch(commit):
            raise BadSource("git shows changes in a form that cannot be read.")
        entries = list(_entries(stream, number, commit))
        if patches and stream.peek(1) == b"\0":  # between raw entries and patches
            stream.token()
        for entry in entries:
            yield _with_patch(stream, entry) if patches else entry
        if stream.peek(5) == b"diff ":
            raise BadSource(f"git shows a patch of {commit} that belongs to no changed file")


def _entries(stream: ByteStream, number: int, commit: str) -> Iterator[Change]:
    """Yield the raw entries: `:mode mode hash hash letter`, and `::` etc. with more parents."""
    while stream.peek(1) == b":":
        fields = stream.token().split(b" ")
        parents = len(fields[0]) - len(fields[0].lstrip(b":"))
        fields[0] = fields[0].lstrip(b":")
        letters = fields[-1].decode("ascii").rstrip("0123456789")
        old_path = path = stream.token()
        if parents == 1 and letters in {"R", "C"}:
            path = stream.token()
        yield Change(number, commit, letters, tuple(fields[: parents + 1]), old_path, path)


def _with_patch(stream: ByteStream, entry: Change) -> Change:
    """Return the entry with the patch that follows in the stream, if the next one is its own."""
    parents = len(entry.modes) - 1
    if parents > 1:
        header = b"diff --cc " + quote(entry.path) + b"\n"
    else:
        names = (quote(b"a/" + entry.old_path), quote(b"b/" + entry.path))
        header = b"diff --git " + b" ".join(names) + b"\n"
    sections = _Sections(stream)
    # A change of type (file to link) comes as a deletion and a creation.
    for _ in range(2 if entry.letters == "T" else 1):
        found = stream.peek(len(header))
        if found == header:
            sections.read(parents)
        elif not found and parents == 1:  # a patch is due for each change that is no merge's
            raise EOFError
    return replace(entry, patch=b"".join(sections.kept), binary=sections.binary)


class _Sections:
    """The patches of one file: what is kept of their hunks, and whether git calls it binary."""

    def __init__(self, stream: ByteStream) -> None:
        self.kept: list[bytes] = []
        self.binary = False
        self._stream = stream
        self._size = 0

    def read(self, parents: int) -> None:
        self._stream.line()
        while self._stream.peek(_LONGEST_HEADER).startswith(_HEADERS):
            self.binary |= self._stream.line().startswith(b"Binary")
        while self._stream.peek(2) == b"@@":
            self._read_hunk(parents)

    def _read_hunk(self, parents: int) -> None:
        found = _HUNK.fullmatch(self._stream.line())
        if found is None or len(found["marks"]) != parents + 1:
            raise BadSource("git shows a hunk with a header that cannot be read.")
        old, new = found["old"].split()[0].lstrip(b"-"), found["new"]
        if parents == 1:
            self._keep(b"@@ -%b +%b @@%b" % (old, new, found["rest"]))
            self._read_lines(_count(old), _count(new))
        else:
            place = len(self.kept)
            first, _, _ = old.partition(b",")
            lines = self._read_combined_lines(parents, _count(new))
            self.kept.insert(place, b"@@ -%b,%d +%b @@\n" % (first, lines, new))
        while self._stream.peek(1) == b"\\":  # \ No newline at end of file
            self._keep(self._stream.line())

    def _read_lines(self, old: int, new: int) -> None:
        while old > 0 or new > 0:
            line = self._stream.line()
            mark = line[:1]
            if mark != b"\\":
                old -= mark != b"+"
                new -= mark != b"-"
            self._keep(line)

    def _read_combined_lines(self, parents: int, new: int) -> int:
        """Read lines with one mark a parent, keep those of the first parent or the result.

        Returns how many lines of the first parent there are. Git sometimes counts the lines of
        the parents wrong, those of the result right; after the last of these only lost lines can
        follow, which nothing else looks like.
        """
        old = 0
        while new > 0 or _is_lost(self._stream.peek(parents)):
            line = self._stream.line()
            marks = line[:parents]
            lost = _is_lost(marks)
            new -= not lost
            if marks.startswith(b"-") or not lost:
                old += not marks.startswith(b"+")
                self._keep(marks[:1] + line[parents:])
        return old

    def _keep(self, line: bytes) -> None:
        if self._size < MOST_BYTES:
            self.kept.append(line)
            self._size += len(line)


def quote(path: bytes) -> bytes:
    """Return a path as git writes it in headers: in quotes where it holds special characters."""
    if not any(byte in _ESCAPES for byte in path):
        return path
    return b'"' + b"".join(_ESCAPES.get(byte, bytes((byte,))) for byte in path) + b'"'


def _is_lost(marks: bytes) -> bool:
    """Return whether a line with these marks is in those parents only and not in the result."""
    return b"-" in marks and not marks.strip(b" -")


def _count(part: bytes) -> int:
    """Return the number of lines of `first,lines`; one where it is left out."""
    _, _, lines = part.partition(b",")
    return int(lines or b"1")
