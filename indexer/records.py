"""Records of the index contract, checked on the way in.

One table says what each column takes; `parse_row` and `parse_edge` hold a record to it and make
the lexical columns. The meaning of the columns is in docs/index-contract.md.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from indexer.errors import BadRecord
from search.normalise import normalise
from search.types import ROW_TYPES

MAX_CONTENT: Final = 8_000  # characters, by contract
MOST_KEY_BYTES: Final = 500  # of ids, names, labels
MOST_PATH_BYTES: Final = 2_000
REPLACEMENT: Final = "\ufffd"


@dataclass(slots=True)
class Repairs:
    """How often something had to be put right on the way in, by kind."""

    counts: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1


Values = dict[str, Any]


def clean(text: str, repairs: Repairs) -> str:
    """Replace what PostgreSQL cannot store: NUL and lone surrogates become U+FFFD, counted."""
    if "\0" in text:
        repairs.count("NUL replaced")
        text = text.replace("\0", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        repairs.count("lone surrogate replaced")
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _text(name: str, value: Any, repairs: Repairs) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRecord(f"{name} must be text, not {type(value).__name__}")
    return clean(value, repairs)


def _key(most: int) -> Callable[[str, Any, Repairs], str]:
    """Return a reader of text that stands in an index, which takes no entry over 2,700 bytes."""

    def parse(name: str, value: Any, repairs: Repairs) -> str:
        text = _text(name, value, repairs)
        if len(text.encode()) > most:
            raise BadRecord(f"{name} is longer than {most:,} bytes")
        return text

    return parse


def _required(name: str, value: Any, repairs: Repairs) -> str:
    if not (text := _key(MOST_KEY_BYTES)(name, value, repairs)):
        raise BadRecord(f"{name} is missing or empty")
    return text


def _type(name: str, value: Any, repairs: Repairs) -> str:
    if value not in ROW_TYPES:
        raise BadRecord(f"{name} is {value!r}; it must be one of {', '.join(ROW_TYPES)}")
    return str(value)


def _content(name: str, value: Any, repairs: Repairs) -> str:
    text = _text(name, value, repairs)
    if len(text) > MAX_CONTENT:
        repairs.count(f"content cut to {MAX_CONTENT:,} characters")
    return text[:MAX_CONTENT]


def _texts(name: str, value: Any, repairs: Repairs) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadRecord(f"{name} must be a list of texts")
    return [_key(MOST_KEY_BYTES)(name, item, repairs) for item in value]


def _integer(bits: int) -> Callable[[str, Any, Repairs], int]:
    def parse(name: str, value: Any, repairs: Repairs) -> int:
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadRecord(f"{name} must be an integer, not {value!r}")
        if not 0 <= value < 2 ** (bits - 1):
            raise BadRecord(f"{name} is {value}; it must be between 0 and {2 ** (bits - 1) - 1}")
        return value

    return parse


def _time(name: str, value: Any, repairs: Repairs) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise BadRecord(f"{name} is {value!r}; it must be an ISO 8601 time") from None
    if moment.tzinfo is None:
        raise BadRecord(f"{name} is {value!r}; it must carry a time zone, such as Z or +09:00")
    try:
        moment.astimezone(UTC)
    except OverflowError:  # PostgreSQL would store it, and no reader could read it back
        raise BadRecord(f"{name} is {value!r}; it must lie in the years 1 to 9999") from None
    return moment


# Column → how its value is read. The order is that of the table in schema.sql.
COLUMNS: Final[Mapping[str, Callable[[str, Any, Repairs], Any]]] = {
    "vector_id": _required,
    "repo": _required,
    "type": _type,
    "state": _key(MOST_KEY_BYTES),
    "labels": _texts,
    "milestone": _key(MOST_KEY_BYTES),
    "assignees": _texts,
    "created_at": _time,
    "updated_at": _time,
    "number": _integer(32),
    "tag_name": _key(MOST_KEY_BYTES),
    "doc_path": _key(MOST_PATH_BYTES),
    "wiki_extension": _text,
    "commit_sha": _key(MOST_KEY_BYTES),
    "file_path": _key(MOST_PATH_BYTES),
    "file_status": _text,
    "commit_date": _time,
    "commit_author": _text,
    "author": _text,
    "comment_id": _integer(64),
    "review_id": _integer(64),
    "line": _integer(32),
    "title": _text,
    "content": _content,
}
MADE_COLUMNS: Final = ("title_fts", "content_fts", "embedding")

EDGE_COLUMNS: Final[Mapping[str, Callable[[str, Any, Repairs], Any]]] = {
    "src_vector_id": _required,
    "dst_vector_id": _required,
    "repo": _required,
    "src_slug": _text,
    "dst_slug": _text,
    "edge_kind": _required,
    "updated_at": _time,
}


def parse_row(record: Mapping[str, Any], *, dimensions: int, repairs: Repairs) -> Values:
    """Return the column values of a `row` record, `title_fts` and `content_fts` made.

    `embedding` comes as base64 of little-endian float16, or null. Raises BadRecord.
    """
    values = {name: parse(name, record.get(name), repairs) for name, parse in COLUMNS.items()}
    values["title_fts"] = normalise(values["title"])
    values["content_fts"] = normalise(values["content"])
    values["embedding"] = decode_vector(record.get("embedding"), dimensions)
    return values


def parse_edge(record: Mapping[str, Any], *, repairs: Repairs) -> Values:
    """Return the column values of an `edge` record. Raises BadRecord."""
    return {name: parse(name, record.get(name), repairs) for name, parse in EDGE_COLUMNS.items()}


def decode_vector(encoded: Any, dimensions: int) -> str | None:
    """Turn base64 float16 into pgvector's text form; raises BadRecord naming what is wrong."""
    if encoded is None:
        return None
    try:
        data = base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise BadRecord("embedding is not base64") from None
    if len(data) != 2 * dimensions:
        raise BadRecord(
            f"embedding holds {len(data) / 2:g} numbers; the header says {dimensions} dimensions"
        )
    vector = np.frombuffer(data, dtype="<f2").astype(float)
    if not np.isfinite(vector).all():
        raise BadRecord("embedding holds NaN or infinity")
    return vector_text(vector.tolist())


def encode_vector(vector: str | None) -> str | None:
    """Turn pgvector's text form into base64 float16: the inverse of `decode_vector`."""
    if vector is None:
        return None
    numbers = np.fromstring(vector.strip("[]"), dtype=float, sep=",")
    return base64.b64encode(numbers.astype("<f2").tobytes()).decode()


def vector_text(vector: list[float]) -> str:
    """Return pgvector's text form of a vector."""
    return f"[{','.join(map(repr, vector))}]"
