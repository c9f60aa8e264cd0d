"""Snapshot files: gzip (or plain) JSON Lines that carry an index from one place to another.

The format is in docs/index-contract.md. Files of any size are streamed.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from indexer.errors import BadRecord, BadSource
from indexer.packed import open_unpacked

FORMAT: Final = "rag-index-snapshot"
VERSION: Final = 1
MAX_DIMENSIONS: Final = 4_000  # of a halfvec that HNSW can index
_LONGEST_LINE: Final = 4_000_000  # bytes; the longest valid row is far below


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a snapshot."""

    embedding_model: str
    dimensions: int
    source: str
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One line after the header: its number from 1, and its record or what is wrong with it."""

    number: int
    record: dict[str, Any] | None
    problem: str | None = None


class SnapshotReader:
    """Reads a snapshot line by line; `position` is the offset in the file as it lies on disk."""

    def __init__(self, file: BinaryIO, lines: BinaryIO, path: Path) -> None:
        self._file = file
        self._lines = lines
        self._path = path
        self.header = self._read_header()

    @property
    def position(self) -> int:
        return self._file.tell()

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines after the header; raises BadSource where the file itself breaks off."""
        number = 1
        try:
            while data := self._lines.readline(_LONGEST_LINE):
                number += 1
                if len(data) == _LONGEST_LINE and not data.endswith(b"\n"):
                    self._skip_line()
                    yield Line(number, None, f"longer than {_LONGEST_LINE:,} bytes")
                elif not data.isspace():
                    yield _parse(number, data)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadSource(
                f"{self._path.name} is damaged or cut short after line {number}: {error}"
            ) from error

    def _skip_line(self) -> None:
        while (data := self._lines.readline(_LONGEST_LINE)) and not data.endswith(b"\n"):
            pass

    def _read_header(self) -> Header:
        try:
            first = _parse(1, self._lines.readline(_LONGEST_LINE))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadSource(f"{self._path.name} is not a whole gzip file: {error}") from error
        record = first.record or {}
        if record.get("kind") != "header" or record.get("format") != FORMAT:
            raise BadSource(
                f"{self._path.name} is not a snapshot: its first line must be a header with "
                f'"format": "{FORMAT}"'
            )
        if record.get("version") != VERSION:
            raise BadSource(
                f"{self._path.name} has format version {record.get('version')}; "
                f"this program reads version {VERSION}"
            )
        dimensions = record.get("dimensions")
        if not isinstance(dimensions, int) or not 0 < dimensions <= MAX_DIMENSIONS:
            raise BadSource(
                f"the header's dimensions must be 1 to {MAX_DIMENSIONS}, not {dimensions!r}"
            )
        model = record.get("embedding_model")
        if not isinstance(model, str) or not model:
            raise BadSource("the header names no embedding_model")
        return Header(model, dimensions, str(record.get("source", "")), record)


@contextmanager
def open_snapshot(path: Path) -> Iterator[SnapshotReader]:
    """Open a snapshot for reading; raises BadSource when it is not one."""
    with open_unpacked(path) as (file, lines):
        yield SnapshotReader(file, lines, path)


def fingerprint(path: Path) -> str:
    """Return what tells one snapshot file from another: its size and its first MiB, hashed."""
    digest = hashlib.sha256(str(path.stat().st_size).encode())
    with path.open("rb") as file:
        digest.update(file.read(2**20))
    return digest.hexdigest()


def _parse(number: int, data: bytes) -> Line:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        return Line(number, None, f"not JSON: {error}")
    if not isinstance(record, dict):
        return Line(number, None, "not a JSON object")
    return Line(number, record)


def require_kind(record: dict[str, Any]) -> str:
    """Return `row` or `edge`; raises BadRecord for any other kind."""
    kind = record.get("kind")
    if kind not in {"row", "edge"}:
        raise BadRecord(f"kind is {kind!r}; it must be row or edge")
    return str(kind)
