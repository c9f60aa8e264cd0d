"""Rows of the index as they are shown."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from django.db.models import Case, F, TextField, Value, When

from ingest_readonly.models import SearchDoc
from search.types import Row

_FIELDS: Final = tuple(f.name for f in fields(Row) if f.name != "content")


def fetch(vector_ids: Iterable[str], *, with_content: Iterable[str] = ()) -> dict[str, Row]:
    """Return the rows by id, `content` only for those in `with_content`. One statement.

    An id that the index does not hold is absent from the result.
    """
    ids = list(vector_ids)
    if not ids:
        return {}
    text = Case(
        When(pk__in=list(with_content), then=F("content")),
        default=Value(None),
        output_field=TextField(null=True),
    )
    query = SearchDoc.objects.filter(pk__in=ids).annotate(text=text)
    return {values["vector_id"]: _row(values) for values in query.values(*_FIELDS, "text")}


def _row(values: dict[str, Any]) -> Row:
    content = values.pop("text")
    columns: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    return Row(**columns, content=content)
