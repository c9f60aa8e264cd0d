"""The one place where the parameters of a search are validated."""

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from search.serializers.fields import OneOf, Text, Time, WholeNumber, nearest
from search.types import (
    FUSIONS,
    MAX_QUERY_CHARACTERS,
    MAX_TOP_K,
    ROW_TYPES,
    SORTS,
    STATES,
    Filters,
    SearchRequest,
)

MAX_FILTER_CHARACTERS: Final = 200
MAX_LABELS: Final = 20

_QUERY_NEEDED: Final = "A query is needed: say what to look for."


class SearchParameters(serializers.Serializer[SearchRequest]):
    """What a search may ask for. A parameter that is left out does not filter."""

    query = Text(
        max_length=MAX_QUERY_CHARACTERS,
        help_text="What to look for, in natural language or as an identifier.",
        error_messages={"required": _QUERY_NEEDED, "blank": _QUERY_NEEDED},
    )
    repo = Text(
        required=False,
        max_length=MAX_FILTER_CHARACTERS,
        help_text="Only rows of this repository: its full name, `owner/name`, exactly.",
    )
    type = OneOf(choices=ROW_TYPES, required=False, help_text="Only rows of this type.")
    state = OneOf(choices=STATES, required=False, help_text="Only rows in this state.")
    labels = serializers.ListField(
        child=Text(max_length=MAX_FILTER_CHARACTERS),
        required=False,
        max_length=MAX_LABELS,
        help_text="Only rows that carry all of these labels. In a query string the parameter is "
        "repeated: `labels=bug&labels=search`.",
    )
    milestone = Text(
        required=False,
        max_length=MAX_FILTER_CHARACTERS,
        help_text="Only rows of this milestone: its title, exactly.",
    )
    assignee = Text(
        required=False,
        max_length=MAX_FILTER_CHARACTERS,
        help_text="Only rows assigned to this login.",
    )
    since = Time(
        required=False,
        help_text="Only rows updated at this time or later. ISO 8601 with a zone; in a query "
        "string the plus sign of an offset is written `%2B`.",
    )
    until = Time(
        required=False,
        help_text="Only rows updated before this time. ISO 8601 with a zone, later than `since`.",
    )
    top_k = WholeNumber(
        default=10,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text="How many results, each a distinct entity, to return at most.",
    )
    fusion = OneOf(
        choices=FUSIONS,
        default="rrf",
        help_text="Which rankers vote: all of them by reciprocal rank (`rrf`), vectors only, or "
        "words only.",
    )
    sort = OneOf(choices=SORTS, default="relevance", help_text="In which order results come.")

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the values; raises ValidationError with every error, unknown names included."""
        errors: dict[str, Any] = {
            printable(name): [_unknown(name, list(self.fields))]
            for name in data
            if name not in self.fields
        }
        values: dict[str, Any] = {}
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            errors = {**_detail(error), **errors}
        if errors:
            raise ValidationError(errors)
        return values

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check what no field can check alone."""
        since, until = attrs.get("since"), attrs.get("until")
        if since and until and since >= until:
            raise ValidationError({"since": ["Must be earlier than until."]})
        return attrs


def to_request(data: Mapping[str, object]) -> SearchRequest:
    """Return the search that `data` asks for: parameters by name, values as JSON has them.

    Raises ValidationError (of this package) naming every parameter that is wrong.
    """
    parameters = SearchParameters(data=dict(data))
    parameters.is_valid(raise_exception=True)
    values: dict[str, Any] = parameters.validated_data
    values["labels"] = tuple(dict.fromkeys(values.get("labels", ())))
    outside = {"query", "top_k", "fusion", "sort"}
    filters = {name: value for name, value in values.items() if name not in outside}
    return SearchRequest(filters=Filters(**filters), **{name: values[name] for name in outside})


def messages_by_field(error: ValidationError) -> dict[str, list[str]]:
    """Return the messages of an error of `to_request`, by parameter, for a form to show."""
    return {name: list(_flatten(detail)) for name, detail in _detail(error).items()}


def printable(name: str) -> str:
    """Return a name that a client sent, short, and encodable where it held a lone surrogate."""
    return name[:100].encode("utf-8", "backslashreplace").decode("utf-8")


def _unknown(name: str, known: list[str]) -> ErrorDetail:
    near = nearest(name, known)
    hint = f" Did you mean {near}?" if near else ""
    return ErrorDetail(f"Unknown parameter.{hint} Known: {', '.join(known)}.", code="unknown")


def _detail(error: ValidationError) -> dict[str, Any]:
    detail = error.detail
    return dict(detail) if isinstance(detail, dict) else {"non_field_errors": detail}


def _flatten(detail: Any) -> list[str]:
    if isinstance(detail, dict):
        detail = list(detail.values())
    if isinstance(detail, list):
        return [message for part in detail for message in _flatten(part)]
    return [str(detail)]
