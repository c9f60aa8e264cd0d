"""The one place where the parameters of a request are validated."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from search import entity_rows
from search.serializers.fields import Flag, OneOf, Text, Time, WholeNumber, nearest
from search.types import (
    ANY,
    FUSIONS,
    MAX_GRAPH_HOPS,
    MAX_QUERY_CHARACTERS,
    MAX_TOP_K,
    SORTS,
    STATE_FILTERS,
    TYPE_FILTERS,
    Filters,
    SearchRequest,
)

MAX_FILTER_CHARACTERS: Final = 200
MAX_LABELS: Final = 20
MAX_TOKEN_CHARACTERS: Final = 2_000

_FILTERS: Final = tuple(filter_.name for filter_ in fields(Filters))
_TAKE_ANY: Final = ("type", "state")


class Parameters(serializers.Serializer[Any]):
    """Parameters of which an unknown one is an error."""

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


class SearchParameters(Parameters):
    """What a search may ask for. A parameter that is left out does not filter."""

    query = Text(
        default="",
        allow_blank=True,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="What to look for, in natural language or as an identifier. Left out or blank, "
        "the answer is a scan: the rows of a window of time, newest first, not collapsed.",
    )
    repo = Text(
        required=False,
        max_length=MAX_FILTER_CHARACTERS,
        help_text="Only rows of this repository: its full name, `owner/name`, exactly.",
    )
    type = OneOf(
        choices=TYPE_FILTERS, required=False, help_text="Only rows of this type; `all`: of any."
    )
    state = OneOf(
        choices=STATE_FILTERS, required=False, help_text="Only rows in this state; `all`: in any."
    )
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
        "string the plus sign of an offset is written `%2B`. In a scan the default is seven days "
        "before `until`, or before now.",
    )
    until = Time(
        required=False,
        help_text="Only rows updated before this time. ISO 8601 with a zone, later than `since`.",
    )
    top_k = WholeNumber(
        default=10,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text="How many results, each a distinct entity, to return at most; in a scan, rows.",
    )
    fusion = OneOf(
        choices=FUSIONS,
        default="rrf",
        help_text="Which rankers vote: all of them by reciprocal rank (`rrf`), vectors only, or "
        "words only. A scan ignores it.",
    )
    rerank = Flag(
        default=True,
        help_text="Whether a reranker, where one is configured, orders the best rows. A scan and "
        "an order by time ignore it.",
    )
    sort = OneOf(
        choices=SORTS,
        default="relevance",
        help_text="In which order results come. In a scan `relevance` is `updated_desc`.",
    )
    include_content = Flag(
        default=False,
        help_text="Whether the first five documents and five wiki pages come with their text.",
    )
    graph_expand = Flag(
        default=False,
        help_text="Whether pages that results mention, or that mention them, are added after "
        "them, outside `top_k`. A scan ignores it.",
    )
    graph_hops = WholeNumber(
        default=1,
        min_value=1,
        max_value=MAX_GRAPH_HOPS,
        help_text="Over how many mentions `graph_expand` goes.",
    )
    page = Text(
        required=False,
        max_length=MAX_TOKEN_CHARACTERS,
        help_text="`next_page` of an earlier scan with the same filters and order: leads to the "
        "rows after that answer's. Scans only.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check what no field can check alone."""
        since, until = attrs.get("since"), attrs.get("until")
        if since and until and since >= until:
            raise ValidationError({"since": ["Must be earlier than until."]})
        if attrs["query"] and "page" in attrs:
            raise ValidationError({"page": ["Is for scans only: leave the query out."]})
        return attrs


class EntityParameters(Parameters):
    """Which rows of an entity to return."""

    cursor = Text(
        required=False,
        max_length=MAX_TOKEN_CHARACTERS,
        help_text="`next_cursor` of an earlier answer about the same entity.",
    )
    limit = WholeNumber(
        default=50,
        min_value=1,
        max_value=entity_rows.MAX_LIMIT,
        help_text="How many rows to return at most.",
    )


class NoParameters(Parameters):
    """None at all."""


def to_request(data: Mapping[str, object]) -> SearchRequest:
    """Return the search or scan that `data` asks for: parameters by name, values as JSON has them.

    Raises ValidationError (of this package) naming every parameter that is wrong.
    """
    values = validated(SearchParameters, data)
    values["labels"] = tuple(dict.fromkeys(values.get("labels", ())))
    for name in _TAKE_ANY:
        if values.get(name) == ANY:
            del values[name]
    filters = {name: values.pop(name) for name in _FILTERS if name in values}
    return SearchRequest(filters=Filters(**filters), **values)


def validated(parameters: type[Parameters], data: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of `parameters` in `data`, defaults included; raises ValidationError."""
    serializer = parameters(data=dict(data))
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values


def messages_by_field(error: ValidationError) -> dict[str, list[str]]:
    """Return the messages of an error of `to_request`, by parameter, for a form to show."""
    return {name: list(_flatten(detail)) for name, detail in _detail(error).items()}


def printable(name: str) -> str:
    """Return a name that a client sent, short, and encodable where it held a lone surrogate."""
    return name[:100].encode("utf-8", "backslashreplace").decode("utf-8")


def _unknown(name: str, known: list[str]) -> ErrorDetail:
    near = nearest(name, known)
    hint = f" Did you mean {near}?" if near else ""
    those = f"Known: {', '.join(known)}." if known else "There are none here."
    return ErrorDetail(f"Unknown parameter.{hint} {those}", code="unknown")


def _detail(error: ValidationError) -> dict[str, Any]:
    detail = error.detail
    return dict(detail) if isinstance(detail, dict) else {"non_field_errors": detail}


def _flatten(detail: Any) -> list[str]:
    if isinstance(detail, dict):
        detail = list(detail.values())
    if isinstance(detail, list):
        return [message for part in detail for message in _flatten(part)]
    return [str(detail)]
