"""JSON records of any number: one a line (NDJSON), or in an array, or in several arrays."""

import codecs
import json
from collections.abc import Iterator
from typing import Any, Final

from indexer.errors import BadSource
from indexer.packed import Packed
from indexer.snapshot import Line

_LONGEST: Final = 4_000_000  # bytes or characters of a record; the longest valid one is far below
_BLOCK: Final = 65_536
_BETWEEN: Final = " \t\r\n,[]\ufeff"


def json_records(source: Packed) -> Iterator[Line]:
    """Yield the records of a file, each with the number of its line.

    A line that is no record is yielded with what is wrong with it; in an array nothing tells where
    the next record begins, so BadSource is raised.
    """
    first = source.readline(_LONGEST)
    if first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        yield from _Array(source, first)
    else:
        yield from _lines(source, first)


def _lines(source: Packed, data: bytes) -> Iterator[Line]:
    number = 0
    while data:
        number += 1
        if len(data) == _LONGEST and not data.endswith(b"\n"):
            while (rest := source.readline(_LONGEST)) and not rest.endswith(b"\n"):
                pass
            yield Line(number, None, f"longer than {_LONGEST:,} bytes")
        elif not data.isspace():
            yield _parse(number, data)
        data = source.readline(_LONGEST)


def _parse(number: int, data: bytes) -> Line:
    try:
        return _line(number, json.loads(data))
    except (ValueError, RecursionError) as error:
        return Line(number, None, f"not JSON: {error}")


def _line(number: int, record: Any) -> Line:
    if not isinstance(record, dict):
        return Line(number, None, "not a JSON object")
    return Line(number, record)


class _Array:
    """Reads the values of JSON arrays one by one."""

    def __init__(self, source: Packed, first: bytes) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = self._decoder.decode(first)
        self._ended = False
        self._number = 1

    def __iter__(self) -> Iterator[Line]:
        json_decoder = json.JSONDecoder()
        while self._skip_between():
            try:
                record, end = json_decoder.raw_decode(self._text)
            except (ValueError, RecursionError) as error:
                # Perhaps it goes on in the next block. Twice as much is read each time, so that a
                # long record is not parsed from its beginning again and again.
                if self._ended or len(self._text) > _LONGEST or isinstance(error, RecursionError):
                    raise BadSource(
                        f"{self._source.name} line {self._number}: not JSON: {error}"
                    ) from error
                self._fill(max(len(self._text), _BLOCK))
                continue
            yield _line(self._number, record)
            self._take(end)

    def _skip_between(self) -> bool:
        while True:
            self._take(len(self._text) - len(self._text.lstrip(_BETWEEN)))
            if self._text:
                return True
            if self._ended:
                return False
            self._fill(_BLOCK)

    def _take(self, end: int) -> None:
        self._number += self._text.count("\n", 0, end)
        self._text = self._text[end:]

    def _fill(self, size: int) -> None:
        data = self._source.read(size)
        self._ended = not data
        self._text += self._decoder.decode(data, final=self._ended)
