"""Bytes of a git repository as text and times: nothing in it need be what it should be."""

import codecs
import re
from datetime import UTC, datetime
from typing import Final

from indexer.records import Repairs

# An index entry of PostgreSQL holds 2,704 bytes; paths are in indexes, beside the repository.
MOST_PATH_BYTES: Final = 2_000
_BINARY_WITHIN: Final = 8_000  # bytes in which git, too, looks for a NUL
# Codecs of human text; Python has others, some of them slow on hostile input.
_ENCODINGS: Final = re.compile(r"(?i)(iso|latin|windows|cp|euc|sh|sjis|utf|koi8|gb|big5|us-?ascii)")


def decode(data: bytes, repairs: Repairs, what: str) -> str:
    """Return UTF-8 text; lines that are not are read as Latin-1, and that is counted for `what`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        repairs.count(f"{what} read as Latin-1")
        return "\n".join(map(_decode_line, data.split(b"\n")))


def decode_as(data: bytes, encoding: str, repairs: Repairs) -> str:
    """Return the text of a commit message in the encoding that the commit names, if it can be."""
    if _ENCODINGS.match(encoding):
        try:
            return codecs.decode(data, encoding)
        except (LookupError, ValueError):
            repairs.count("commit message not in the encoding that it names")
    return decode(data, repairs, "commit message")


def decode_path(path: bytes, repairs: Repairs) -> str | None:
    """Return a path, None (counted) for one that has no place in the index.

    A path must lead back to the file. One that is not UTF-8 has no such form as text: any
    replacement could be another file's name.
    """
    try:
        text = path.decode()
    except UnicodeDecodeError:
        repairs.count("path that is not UTF-8: file skipped")
        return None
    if len(path) > MOST_PATH_BYTES:
        repairs.count(f"path of more than {MOST_PATH_BYTES:,} bytes: file skipped")
        return None
    return text


def is_binary(data: bytes) -> bool:
    """Return whether git takes a file with this beginning for binary."""
    return b"\0" in data[:_BINARY_WITHIN]


def moment(seconds: str, repairs: Repairs) -> datetime | None:
    """Return the time of a commit, None (counted) where there is none or no calendar has it.

    Seconds count from 1970 in UTC whatever the zone beside them says, so an impossible zone
    does no harm.
    """
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        repairs.count("commit without a possible date")
        return None


def _decode_line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")
