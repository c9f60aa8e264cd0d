"""Input fields that convert nothing: a value of the wrong type is an error, not a guess."""

import difflib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from rest_framework import serializers

# RFC 3339, and the two liberties of ISO 8601 that people take: no seconds, no colon in the zone.
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(?P<zone>Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# What is left of `+09:00` in a query string where the plus sign was not percent-encoded.
_LOST_PLUS: Final = re.compile(r".*T.* \d{2}:?\d{2}", re.ASCII)


class Text(serializers.CharField):
    """A string. NUL and lone surrogates are refused: neither PostgreSQL nor UTF-8 holds them."""

    default_error_messages = {"invalid": "Must be a string."}

    def to_internal_value(self, data: Any) -> str:
        """Return the string, without white space around it."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class WholeNumber(serializers.IntegerField):
    """An integer; not true, "10" or 10.0."""

    default_error_messages = {"invalid": "Must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        """Return the number."""
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    """True or false; not 1, "yes" or null."""

    default_error_messages = {"invalid": "Must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        """Return the value."""
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class OneOf(serializers.ChoiceField):
    """One of a few words. The message lists them, and never repeats what was sent."""

    default_error_messages = {
        "invalid_choice": "Must be one of: {known}.",
        "did_you_mean": "Must be one of: {known}. Did you mean {nearest}?",
    }

    def to_internal_value(self, data: Any) -> str:
        """Return the word."""
        words = list(self.choices)
        if not isinstance(data, str) or data not in words:
            known = ", ".join(words)
            if isinstance(data, str) and (near := nearest(data, words)):
                self.fail("did_you_mean", known=known, nearest=near)
            self.fail("invalid_choice", known=known)
        return data


class Time(serializers.DateTimeField):
    """A point in time, in ISO 8601 with its zone; its value is in UTC."""

    default_error_messages = {
        "invalid": "Must be a time in ISO 8601 with a zone, like 2026-01-31T09:00:00Z.",
        "date": "Must have a time of day and a zone: {data}T00:00:00Z.",
        "naive": "Must name its zone: {data}Z for UTC, or an offset like +09:00.",
        "lost_plus": "The plus sign of the zone arrived as a space: percent-encode it as %2B.",
        "overflow": "Is out of range.",
    }

    def to_internal_value(self, value: Any) -> datetime:
        """Return the time."""
        text = value.upper() if isinstance(value, str) and value.isascii() else ""
        if _DATE.fullmatch(text):
            self.fail("date", data=text)
        match = _TIME.fullmatch(text)
        if match is None:
            self.fail("lost_plus" if _LOST_PLUS.fullmatch(text) else "invalid")
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self.fail("invalid")
        if match["zone"] is None:
            self.fail("naive", data=text)
        try:
            return time.astimezone(UTC)
        except OverflowError:
            self.fail("overflow")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the name of `known` that `word` was probably meant to be, if any."""
    by_key = {_key(name): name for name in known}
    # Comparing costs the square of the length; no name is that long.
    found = difflib.get_close_matches(_key(word[:50]), by_key, n=1, cutoff=0.6)
    return by_key[found[0]] if found else None


def _key(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")
