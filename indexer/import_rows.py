"""A row of the index from what the reference keeps in three places.

Of a row's values that of D1 holds; where it has none, that of the vector's metadata, then that of
the record store. Titles and times of creation are in the record store alone.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from indexer.d1_values import as_text
from indexer.errors import BadRecord
from indexer.git_text import MOST_PATH_BYTES
from indexer.record_store import is_nothing
from indexer.records import COLUMNS, EDGE_COLUMNS, Repairs

Values = Mapping[str, Any]

LISTS: Final = ("labels", "assignees")
TIMES: Final = ("created_at", "updated_at", "commit_date")
WHOLE: Final = ("number", "comment_id", "review_id", "line")
MOST_TITLE: Final = 8_000  # characters; as content
_MOST_BYTES: Final[Mapping[str, int]] = {
    name: 300 if name == "repo" else MOST_PATH_BYTES
    for name in (*COLUMNS, *EDGE_COLUMNS)
    if name not in {*LISTS, *TIMES, *WHOLE, "title", "content"}
}
# What the index makes anew, and what the metadata repeats for Vectorize's filters.
_MADE_ANEW: Final = re.compile(r"content_fts|title_fts|indexed_at|tokenizer_kind")
_SLOTS: Final = {"labels": "label_", "assignees": "assignee_"}
_MOST_SLOTS: Final = 4
_READ_ELSEWHERE: Final = re.compile(r"wiki_path|label_[0-3]|assignee_[01]")
_EPOCH: Final = re.compile(r"-?\d{9,}(\.\d*)?")
_MILLISECONDS: Final = 1e11  # as seconds: the year 5138
_MOST_NAMES: Final = 200  # of fields that are counted apart
_TITLED_BY_RECORD: Final = frozenset({"issue", "pull_request", "release"})


class RowMaker:
    """Makes records that `records.parse_row` and `parse_edge` take.

    `no_column` counts the fields that the index has no column for.
    """

    def __init__(self, repairs: Repairs) -> None:
        self.no_column: Counter[str] = Counter()
        self.repairs = repairs

    def row(self, row: Values, metadata: Values, facts: Values) -> dict[str, Any]:
        """Return the record of a row; raises BadRecord where a value cannot be stored."""
        self._count_unknown("search_docs", row, COLUMNS)
        self._count_unknown("metadata", metadata, COLUMNS)
        self._count_unknown("records", facts, COLUMNS)
        metadata = {**metadata, "doc_path": metadata.get("doc_path") or metadata.get("wiki_path")}
        sources = (row, self._usable(metadata), self._usable(facts))
        record = {name: self._value(name, sources) for name in COLUMNS}
        for name in LISTS:
            record[name] = split(name, record[name], metadata)
        record["title"] = self._title(record, facts)
        record["created_at"] = record["created_at"] or record["commit_date"]
        _check_lengths(record)
        return record

    def edge(self, edge: Values) -> dict[str, Any]:
        """Return the record of an edge; raises BadRecord where a value cannot be stored."""
        self._count_unknown("doc_edges", edge, EDGE_COLUMNS)
        record = {name: self._value(name, [edge]) for name in EDGE_COLUMNS}
        record["edge_kind"] = record["edge_kind"] or "mention"
        _check_lengths(record)
        return record

    def _usable(self, values: Values) -> Values:
        """Return what can be stored of metadata or facts: they complete a row, never cost it."""
        usable = {}
        for name, value in values.items():
            if name in COLUMNS and not is_nothing(value):
                if _is_usable(name, value):
                    usable[name] = value
                else:
                    self.repairs.count(f"{name} beside the row is unusable: left out")
        return usable

    def _value(self, name: str, sources: Iterable[Values]) -> Any:
        value = next((s[name] for s in sources if not is_nothing(s.get(name))), None)
        if name in TIMES:
            return self._time(name, value)
        if name in WHOLE:
            return _whole(value)
        if isinstance(value, list) and name in LISTS:
            return value
        if isinstance(value, bytes):
            self.repairs.count(f"{name} is a blob: read as text")
        return as_text(value) if isinstance(value, str | bytes | int | float) else value

    def _time(self, name: str, value: Any) -> str | None:
        if value is None:
            return None
        try:
            moment = _moment(value)
            if moment.tzinfo is None:
                self.repairs.count(f"{name} names no time zone: read as UTC")
                moment = moment.replace(tzinfo=UTC)
            # Beside the calendar's ends there are times that no reader can show in UTC.
            return moment.astimezone(UTC).isoformat()
        except (ValueError, OverflowError, OSError, TypeError):
            self.repairs.count(f"{name} is no time: left out")
            return None

    def _title(self, record: Mapping[str, Any], facts: Values) -> str:
        kind = record["type"]
        if kind in {"doc", "wiki_doc"}:
            return record["doc_path"] or ""
        if kind == "diff":
            return f"{(record['commit_sha'] or '')[:7]} {record['file_path'] or ''}".strip()
        if kind not in _TITLED_BY_RECORD:
            return ""
        title = facts.get("title")
        if not isinstance(title, str) or not title:
            # Content is title, blank line, body.
            title = (record["content"] or "").partition("\n")[0].strip() or record["tag_name"] or ""
            self.repairs.count("title is in no record: taken from the content")
        return title[:MOST_TITLE]

    def _count_unknown(self, source: str, values: Values, columns: Values) -> None:
        for name, value in values.items():
            if name in columns or is_nothing(value):
                continue
            if _MADE_ANEW.fullmatch(name) or (
                source == "metadata" and _READ_ELSEWHERE.fullmatch(name)
            ):
                continue
            what = f"{source}.{name[:60]}"
            known = what in self.no_column or len(self.no_column) < _MOST_NAMES
            self.no_column[what if known else "others"] += 1


def _is_usable(name: str, value: Any) -> bool:
    if name in LISTS and isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    if name in WHOLE:
        try:
            COLUMNS[name](name, _whole(value), Repairs())
        except BadRecord:
            return False
    return True


def split(name: str, value: Any, metadata: Values) -> Any:
    """Return labels or assignees as a list: split at commas, but for names that hold one.

    The metadata has the first names one by one; where they are those of the text, they are right.
    """
    if not isinstance(value, str):
        return value
    slots = [metadata.get(f"{_SLOTS[name]}{n}") for n in range(_MOST_SLOTS)]
    known = [slot for slot in slots if isinstance(slot, str) and slot]
    begin = ",".join(known)
    if known and (value == begin or value.startswith(f"{begin},")):
        rest = value[len(begin) + 1 :]
    else:
        known, rest = [], value
    return known + [item for part in rest.split(",") if (item := part.strip())]


def _whole(value: Any) -> Any:
    """Return a whole number where there is one; what is none is left for the check to refuse."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value):
        return int(value)
    return value


def _moment(value: Any) -> datetime:
    """Return the time that an ISO 8601 text or seconds or milliseconds since 1970 name."""
    if isinstance(value, str) and not _EPOCH.fullmatch(value):
        return datetime.fromisoformat(value.strip())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    seconds = float(value)
    if abs(seconds) >= _MILLISECONDS:
        seconds /= 1000
    return datetime.fromtimestamp(seconds, UTC)


def _check_lengths(record: Values) -> None:
    """PostgreSQL refuses longer entries in the indexes that these columns have."""
    for name, most in _MOST_BYTES.items():
        value = record.get(name)
        if isinstance(value, str) and len(value.encode(errors="surrogatepass")) > most:
            raise BadRecord(f"{name} is longer than {most:,} bytes")
    for name in LISTS:
        for item in record.get(name) or ():
            if isinstance(item, str) and len(item.encode(errors="surrogatepass")) > MOST_PATH_BYTES:
                raise BadRecord(f"one of {name} is longer than {MOST_PATH_BYTES:,} bytes")
