"""All rows of one entity, whatever a search found of them, and single rows.

An entity is named by its key, as results have it: `file:owner/name:path`, `thread:owner/name:N` or
`row:ID`. Rows come newest first by `updated_at`, rows without a time last, ties by id.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.backends.utils import CursorWrapper

from search import keyset, rows
from search.entities import ENTITY_KEY_SQL
from search.errors import InvalidRequest, NotFound
from search.keyset import Place
from search.presentation import scanned
from search.reading import bounded_snapshot
from search.types import ScannedRow

MAX_LIMIT: Final = 100
_LARGEST_NUMBER: Final = 2**31 - 1  # of the column

# Form of a key → the rows that can have it: conditions that an index on search_docs answers. What
# else keeps a row from an entity is said once, by the key itself.
_REPO: Final = r"(?P<repo>[^/:\s]+/[^/:\s]+)"
_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "file": (
        re.compile(rf"file:{_REPO}:(?P<path>.+)", re.DOTALL),
        "repo = %(repo)s AND ((doc_path = %(path)s AND doc_path <> '')"
        " OR (file_path = %(path)s AND file_path <> ''))",
    ),
    "thread": (
        re.compile(rf"thread:{_REPO}:(?P<number>[1-9][0-9]{{0,9}})", re.ASCII),
        "repo = %(repo)s AND number = %(number)s AND number <> 0",
    ),
    "row": (re.compile(r"row:(?P<vector_id>.+)", re.DOTALL), "vector_id = %(vector_id)s"),
}
_CONVERT: Final[Mapping[str, Callable[[str], Any]]] = {"number": int}

# Returns ids of the rows of an entity, in the order of the walk.
_ROWS: Final = """
SELECT vector_id FROM search_docs WHERE {where} AND ({key}) = %(key)s
 ORDER BY {order} LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class EntityRows:
    """Some rows of an entity; `next_cursor` leads to older ones and is None when there are none."""

    key: str
    rows: tuple[ScannedRow, ...]
    next_cursor: str | None


def entity_rows(*, key: str, cursor: str | None = None, limit: int = 50) -> EntityRows:
    """Return up to `limit` rows of the entity `key`, newest first, after those before `cursor`.

    Raises InvalidRequest naming `key`, `cursor` or `limit`, NotFound when no row has the key,
    IndexUnavailable when the index cannot be read.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest("limit", f"Must be between 1 and {MAX_LIMIT}.")
    condition, values = _parse(key)
    walk = f"search.entity_rows:{key}"
    place = keyset.from_token(walk, cursor, field="cursor")[0] if cursor is not None else None
    with bounded_snapshot() as database:
        ids = _ids(database, condition, {**values, "key": key, "limit": limit + 1}, place)
        found = rows.fetch(ids[:limit], with_content=ids[:limit])
    if not ids and place is None:
        raise NotFound(f"The index holds no row of the entity “{key}”.")
    shown = tuple(scanned(found[vector_id]) for vector_id in ids[:limit])
    more = len(ids) > limit
    last = shown[-1].row if more else None
    token = keyset.to_token(walk, Place(last.updated_at, last.vector_id)) if last else None
    return EntityRows(key, shown, token)


def row(*, vector_id: str) -> ScannedRow:
    """Return one row with its whole indexed text in `content`.

    Raises NotFound when the index does not hold it, IndexUnavailable when it cannot be read.
    """
    _storable("vector_id", vector_id)
    with bounded_snapshot():
        found = rows.fetch([vector_id], with_content=[vector_id])
    if vector_id not in found:
        raise NotFound(f"The index holds no row “{vector_id}”.")
    return scanned(found[vector_id], with_content=True)


def _parse(key: str) -> tuple[str, dict[str, Any]]:
    """Return the condition of a key's form and its values; raises InvalidRequest."""
    _storable("key", key)
    form, condition = _FORMS.get(key.partition(":")[0], (None, ""))
    match = form.fullmatch(key) if form else None
    if match is None:
        raise InvalidRequest(
            "key", "Must be file:owner/name:path, thread:owner/name:number or row:id."
        )
    values = {name: _CONVERT.get(name, str)(text) for name, text in match.groupdict().items()}
    if values.get("number", 0) > _LARGEST_NUMBER:
        raise InvalidRequest("key", f"The number must not be above {_LARGEST_NUMBER}.")
    return condition, values


def _storable(field: str, text: str) -> None:
    """Refuse what PostgreSQL's text cannot hold; raises InvalidRequest naming `field`."""
    if not text or "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidRequest(field, "Must be text without NUL and lone surrogates.")


def _ids(
    database: CursorWrapper, condition: str, values: dict[str, Any], place: Place | None
) -> list[str]:
    column = "updated_at"
    statement = _ROWS.format(
        where=" AND ".join([f"({condition})", *keyset.after(column, place, undated=True)]),
        key=ENTITY_KEY_SQL,
        order=keyset.order(column),
    )
    database.execute(statement, {**values, **keyset.values(place)})
    return [vector_id for (vector_id,) in database.fetchall()]
