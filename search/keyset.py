"""Walking rows in time order: newest first, rows without a time last, ties by vector_id.

A walk goes on after a row, not after a number of rows: whatever is written meanwhile, no row is
lost or met twice, also where times are equal. The place of the row travels as an opaque token,
signed with SECRET_KEY and bound to the walk, so it is either ours and unchanged or refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.core import signing

from search.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Place:
    """The row that a walk stands at; `time` is None among the rows without one."""

    time: datetime | None
    vector_id: str


# The rows after a place: below its time or, at the same time, behind its id. The first condition
# of a pair is implied by the second; it is the one that an index can start at.
_AFTER: Final = (
    "{column} <= %(place_time)s AND ({column} < %(place_time)s OR vector_id > %(place_id)s)"
)
_AFTER_OR_UNDATED: Final = f"({_AFTER} OR {{column}} IS NULL)"
_AFTER_UNDATED: Final = "{column} IS NULL AND vector_id > %(place_id)s"


def order(column: str) -> str:
    """Return the ORDER BY of a walk over `column`, as the indexes on times have it."""
    return f"{column} DESC NULLS LAST, vector_id"


def after(column: str, place: Place | None, *, undated: bool) -> Sequence[str]:
    """Return the conditions, none or one, of the rows after `place`; their values are `values`.

    `undated` says whether rows without a time belong to the walk.
    """
    if place is None:
        return ()
    if place.time is None:
        return (_AFTER_UNDATED.format(column=column),)
    return ((_AFTER_OR_UNDATED if undated else _AFTER).format(column=column),)


def values(place: Place | None) -> dict[str, Any]:
    """Return the parameter values of `after`."""
    return {} if place is None else {"place_time": place.time, "place_id": place.vector_id}


def to_token(walk: str, place: Place, *more: str) -> str:
    """Return a token for `place`, and for texts to be handed back with it.

    `walk` says which walk the token belongs to: it is part of the signature, not of the token.
    """
    time = place.time.isoformat() if place.time else None
    return signing.dumps([time, place.vector_id, *more], salt=walk)


def from_token(walk: str, token: str, *, field: str) -> tuple[Place, list[str]]:
    """Return the place and the texts of a token; raises InvalidRequest naming `field`.

    Refused are a token that was altered, and one of another walk.
    """
    try:
        time, vector_id, *more = signing.loads(token, salt=walk)
    except signing.BadSignature as error:
        raise InvalidRequest(
            field,
            "Must be a token of an earlier answer to the same request: same filters, same order, "
            "not altered.",
        ) from error
    return Place(datetime.fromisoformat(time) if time else None, vector_id), more
