"""Filters as SQL: one table, used by every statement that reads candidates."""

from collections.abc import Mapping
from typing import Any, Final

from search.types import Filters

# Field of Filters → the condition on a row. Values travel as named parameters.
CONDITIONS: Final[Mapping[str, str]] = {
    "repo": "repo = %(repo)s",
    "type": "type = %(type)s",
    "state": "state = %(state)s",
    "labels": "labels @> %(labels)s::text[]",
    "milestone": "milestone = %(milestone)s",
    "assignee": "assignees @> ARRAY[%(assignee)s]::text[]",
    "since": "updated_at >= %(since)s",
    "until": "updated_at < %(until)s",
}


def active(filters: Filters) -> dict[str, Any]:
    """Return the filters in use, by name, as SQL parameter values."""
    values = {name: getattr(filters, name) for name in CONDITIONS}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value != ()
    }


def where(filters: Filters, *extra: str) -> str:
    """Return the conditions of `filters` and `extra` joined by AND; `true` when there are none."""
    return " AND ".join([CONDITIONS[name] for name in active(filters)] + list(extra)) or "true"
