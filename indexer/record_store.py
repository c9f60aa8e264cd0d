"""Records of the reference's record store: where titles and times of creation come from.

A record is a row of one of the store's tables as a JSON object, with the table's column names or
their camelCase forms (`created_at` or `createdAt`). `table` may name the table; where it does not,
the columns tell. A record belongs to the row whose id is made of its key.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from indexer.errors import BadRecord
from indexer.git_history import vector_id
from indexer.records import Repairs, clean

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True, slots=True)
class _Table:
    """How a table is told by its columns, and how the id of its row is made."""

    prefix: str
    key: tuple[str, ...]
    told_by: tuple[str, ...]


# In this order: the first whose columns are all there.
_TABLES: Final[Mapping[str, _Table]] = {
    "pr_reviews": _Table("pv", ("review_id",), ("review_id",)),
    "pr_review_comments": _Table("pc", ("comment_id",), ("comment_id", "file_path")),
    "issue_comments": _Table("ic", ("comment_id",), ("comment_id",)),
    "diffs": _Table("c", ("commit_sha", "file_path"), ("commit_sha", "file_path")),
    "releases": _Table("r", ("tag_name",), ("tag_name",)),
    "wiki_docs": _Table("w", ("page_name",), ("page_name",)),
    "docs": _Table("d", ("path",), ("path",)),
    "issues": _Table("i", ("number",), ("number",)),
}
# Column of the store → column of the index, where they differ.
_RENAMED: Final = {
    "name": "title",
    "path": "doc_path",
    "page_name": "doc_path",
    "extension": "wiki_extension",
    "commit_id": "commit_sha",
}
_TIMES_OF_CREATION: Final = ("created_at", "submitted_at", "published_at")


def is_nothing(value: object) -> bool:
    """Return whether a value stands for "none" in any of the reference's stores."""
    return value is None or (type(value) in {str, bytes, int, float} and not value)


def parse_facts(record: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the id of the row that a record belongs to, and its values by column of the index.

    Raises BadRecord where the record does not say which row it is about.
    """
    fields = {_CAPITAL.sub(r"_\1", name).lower(): value for name, value in record.items()}
    identifier = fields.pop("vector_id", None) or _identifier(fields)
    if not isinstance(identifier, str):
        raise BadRecord("vector_id must be text")
    identifier = clean(identifier, Repairs())
    fields.pop("table", None)
    created = next(
        (fields[name] for name in _TIMES_OF_CREATION if not is_nothing(fields.get(name))), None
    )
    for name in _TIMES_OF_CREATION:
        fields.pop(name, None)
    facts = {_RENAMED.get(name, name): value for name, value in fields.items()}
    return identifier, {**facts, "created_at": created}


def _identifier(fields: Mapping[str, Any]) -> str:
    repo = fields.get("repo")
    if not isinstance(repo, str) or not repo:
        raise BadRecord("repo is missing")
    table = _table(fields)
    parts = [_part(name, fields.get(name)) for name in table.key]
    try:
        return vector_id(table.prefix, repo, *parts)
    except UnicodeEncodeError:
        raise BadRecord("its key holds a lone surrogate") from None


def _table(fields: Mapping[str, Any]) -> _Table:
    if (name := fields.get("table")) is not None:
        if not isinstance(name, str) or name not in _TABLES:
            raise BadRecord(f"table is {name!r}; it must be one of {', '.join(_TABLES)}")
        return _TABLES[name]
    for table in _TABLES.values():
        if not any(is_nothing(fields.get(column)) for column in table.told_by):
            return table
    raise BadRecord("no column tells which table it is of, such as number, tag_name or commit_sha")


def _part(name: str, value: Any) -> str:
    """Return a part of a key as the ids are made of it: numbers in decimal."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise BadRecord(f"{name} is {value!r}; it is part of the record's key")
    return str(value)
