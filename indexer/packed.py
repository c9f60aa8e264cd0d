"""Input files, plain or packed with gzip, read in pieces."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from indexer.errors import BadSource

_GZIP: Final = b"\x1f\x8b"
_DAMAGED: Final = (EOFError, zlib.error, gzip.BadGzipFile)


class Packed:
    """An open input file; `position` is the offset in the file as it lies on disk."""

    def __init__(self, file: BinaryIO, unpacked: BinaryIO, path: Path) -> None:
        self._file = file
        self._unpacked = unpacked
        self.name = path.name
        self.size = path.stat().st_size

    @property
    def position(self) -> int:
        return self._file.tell()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none at the end; raises BadSource where gzip is damaged."""
        try:
            return self._unpacked.read(size)
        except _DAMAGED as error:
            raise self._damaged(error) from error

    def readline(self, size: int) -> bytes:
        """Return a line, or its first `size` bytes; raises BadSource where gzip is damaged."""
        try:
            return self._unpacked.readline(size)
        except _DAMAGED as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> BadSource:
        return BadSource(f"{self.name} is damaged or cut short: {error}")


@contextmanager
def open_unpacked(path: Path) -> Iterator[tuple[BinaryIO, Any]]:
    """Open a file; yield it as it lies on disk and, packed or not, as it reads.

    Raises BadSource where it cannot be read.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadSource(f"cannot read {path}: {error.strerror}") from error
    with file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        yield file, gzip.GzipFile(fileobj=file) if packed else file


@contextmanager
def open_packed(path: Path) -> Iterator[Packed]:
    """Open a file for reading; raises BadSource where it cannot be read."""
    with open_unpacked(path) as (file, unpacked):
        yield Packed(file, unpacked, path)
