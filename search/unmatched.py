"""Why filters left nothing: values that no row of the index has, and names near them."""

import difflib
from collections.abc import Sequence
from typing import Any, Final

from django.db.backends.utils import CursorWrapper

from search.reading import bounded_snapshot
from search.types import Filters, UnmatchedFilter

SUGGESTIONS: Final = 3

# Field of Filters → a statement that returns the values that rows of the index have. The first is
# a loose index scan: one index probe a repository, however many rows there are.
_VALUES: Final = {
    "repo": """
        WITH RECURSIVE known AS (
            SELECT min(repo) AS value FROM search_docs
            UNION ALL
            SELECT (SELECT min(repo) FROM search_docs WHERE repo > value) FROM known
             WHERE value IS NOT NULL
        ) SELECT value FROM known WHERE value IS NOT NULL
    """,
    "milestone": "SELECT DISTINCT milestone FROM search_docs WHERE milestone <> ''",
    "assignee": "SELECT DISTINCT unnest(assignees) FROM search_docs WHERE assignees <> '{}'",
    "labels": "SELECT DISTINCT unnest(labels) FROM search_docs WHERE labels <> '{}'",
}


def explain(cursor: CursorWrapper, wanted: Filters) -> tuple[UnmatchedFilter, ...]:
    """Name each filter value that matches no row by itself, with near names that do.

    One statement a filter in use; called only when the pool is empty.
    """
    found = []
    for name, statement in _VALUES.items():
        value: Any = getattr(wanted, name)
        asked = value if isinstance(value, tuple) else (value,) if value else ()
        if not asked:
            continue
        cursor.execute(statement)
        known = sorted(row[0] for row in cursor.fetchall())
        found += [UnmatchedFilter(name, one, near(one, known)) for one in asked if one not in known]
    return tuple(found)


def known_repositories() -> tuple[str, ...]:
    """Return the names of all repositories of the index, sorted; for a form to offer.

    Raises IndexUnavailable when the index cannot be read.
    """
    with bounded_snapshot() as cursor:
        cursor.execute(_VALUES["repo"])
        return tuple(sorted(row[0] for row in cursor.fetchall()))


def near(value: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return up to three of `known` near `value`: the same but for case, then those of which it is
    a part (`app` of `acme/app`), then those spelled nearly alike."""
    folded = value.casefold()
    ranked = sorted(known, key=lambda name: (name.casefold() != folded, len(name), name))
    holding = [name for name in ranked if folded in name.casefold()]
    alike = difflib.get_close_matches(value, known, n=SUGGESTIONS, cutoff=0.6)
    return tuple(dict.fromkeys([*holding, *alike]))[:SUGGESTIONS]
