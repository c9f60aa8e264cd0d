"""Reading what git prints: tokens that end in NUL, lines of any length, blocks of a known size."""

import codecs
from collections.abc import Iterator
from typing import IO, Final

# Bytes of a text that are kept: content holds 8,000 characters of at most 4 bytes.
MOST_BYTES: Final = 32_768
_BLOCK: Final = 65_536


class ByteStream:
    """A reader that can look ahead and holds no more than a block and what it returns.

    The source is unbuffered: it gives what is there and waits only where there is nothing.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._data = b""
        self._at = 0

    def peek(self, size: int) -> bytes:
        """Return the next bytes without taking them; fewer than `size` only at the end."""
        while len(self._data) - self._at < size and self._fill():
            pass
        return self._data[self._at : self._at + size]

    def token(self) -> bytes:
        """Take what comes before the next NUL, and the NUL; names are short, so it is kept whole.

        Raises EOFError where the stream ends before one.
        """
        while (end := self._data.find(b"\0", self._at)) < 0:
            if not self._fill():
                raise EOFError
        token = self._data[self._at : end]
        self._at = end + 1
        return token

    def line(self) -> bytes:
        """Take a line with its newline; of one longer than MOST_BYTES return the beginning.

        Raises EOFError at the end of the stream.
        """
        end = self._data.find(b"\n", self._at)
        if 0 <= end - self._at < MOST_BYTES:
            line = self._data[self._at : end + 1]
            self._at = end + 1
            return line
        kept = b""
        for block in self._blocks_of_line():
            kept += block[: MOST_BYTES - len(kept)]
        if not kept:
            raise EOFError
        return kept if kept.endswith(b"\n") else whole_characters(kept)

    def take(self, size: int) -> bytes:
        """Take `size` bytes and return the first MOST_BYTES of them, whole characters.

        Raises EOFError where the stream is shorter.
        """
        kept, cut = b"", size > MOST_BYTES
        while size:
            block = self.peek(1) and self._data[self._at : self._at + size]
            if not block:
                raise EOFError
            self._at += len(block)
            size -= len(block)
            kept += block[: MOST_BYTES - len(kept)]
        return whole_characters(kept) if cut else kept

    def _blocks_of_line(self) -> Iterator[bytes]:
        while self.peek(1):
            end = self._data.find(b"\n", self._at) + 1
            block = self._data[self._at : end or None]
            self._at += len(block)
            yield block
            if end:
                return

    def _fill(self) -> bool:
        more = self._source.read(_BLOCK)
        self._data = self._data[self._at :] + more
        self._at = 0
        return bool(more)


def whole_characters(data: bytes) -> bytes:
    """Return `data` without the UTF-8 character that it may end in the middle of."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    begun, _ = decoder.getstate()
    return data[: len(data) - len(begun)]
