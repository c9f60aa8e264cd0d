"""The form of the inspection page: the parameters of the API as controls, their state in the URL.

What a parameter may be is said once, by `search.serializers`: names, words to choose from, limits,
help and messages all come from there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.http import QueryDict
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ParseError

from search.serializers import SearchParameters, ValidationError, messages_by_field, to_request
from search.serializers.wire import from_query_string
from search.types import ANY, SearchRequest

# Parameters that are always in sight, in this order; every other one is under "more".
IN_SIGHT: Final = ("query", "repo", "type", "top_k", "fusion", "rerank", "sort")
# A scan is paged, a search is not.
_NOT_OFFERED: Final = frozenset({"page"})
# The page's own parameters, beside those of the search.
WHY: Final = "why"
AGAINST: Final = "against_"
COMPARABLE: Final = ("fusion", "rerank", "sort")
_OWN: Final = frozenset({WHY, "part", "key", "cursor", *(AGAINST + name for name in COMPARABLE)})

_LABELS: Final[Mapping[str, str]] = {
    "repo": "repository",
    "top_k": "results (top_k)",
    "labels": "labels, one a line",
    "include_content": "content",
    "graph_expand": "graph",
    "graph_hops": "graph hops",
}
_LINES: Final = "lines"


@dataclass(frozen=True, slots=True)
class Control:
    """A control: `kind` is select, number, text or lines; `options` are (value, words, chosen)."""

    name: str
    label: str
    kind: str
    value: str
    help: str
    options: tuple[tuple[str, str, bool], ...] = ()
    errors: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    placeholder: str = ""
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a search as a URL has them, blanks left out, in the URL's order."""

    pairs: tuple[tuple[str, str], ...]

    @property
    def query_string(self) -> str:
        return urlencode(self.pairs)

    def first(self, name: str, default: str = "") -> str:
        """Return the value of a parameter."""
        return next((value for key, value in self.pairs if key == name), default)

    def with_(self, **changes: str) -> "Parameters":
        """Return the parameters with some replaced; an empty value leaves one out."""
        kept = [(name, value) for name, value in self.pairs if name not in changes]
        return Parameters((*kept, *((name, value) for name, value in changes.items() if value)))

    def request(self) -> SearchRequest:
        """Return the search they ask for; raises ValidationError as the API does."""
        values = from_query_string(self.query_string)
        if not str(values.get("query", "")).strip():
            # The API answers a blank query with a scan, which has no ranking to inspect.
            values.setdefault("query", "")
            raise _with_blank_query(values)
        return to_request(values)


def parameters(url: QueryDict) -> Parameters:
    """Return the parameters of the search in a URL; `labels` may be repeated, or one a line."""
    pairs = []
    for name, values in url.lists():
        if name in _OWN:
            continue
        for value in values:
            parts = value.splitlines() if name == "labels" else [value]
            pairs += [(name, part.strip()) for part in parts if part.strip()]
    return Parameters(tuple(pairs))


def tidy(url: QueryDict) -> str:
    """Return the query string without the blanks that a browser sends for empty fields.

    Empty where there is nothing to leave out, or no query: then the page says what is missing.
    """
    pairs = [(name, value) for name, values in url.lists() for value in values]
    kept = [(name, value) for name, value in pairs if value.strip()]
    return urlencode(kept) if len(kept) < len(pairs) and url.get("query", "").strip() else ""


def read(given: Parameters) -> tuple[SearchRequest | None, dict[str, list[str]]]:
    """Return the search, or None and the messages by parameter; "" has what no field is for."""
    try:
        return given.request(), {}
    except ValidationError as error:
        found = messages_by_field(error)
    except ParseError as error:
        found = {"": [str(error.detail)]}
    known = SearchParameters().fields
    errors = {name: messages for name, messages in found.items() if name in known}
    others = [
        f"{name}: {m}" if name else m for name in set(found) - set(errors) for m in found[name]
    ]
    return None, {**errors, "": others} if others else errors


def controls(
    given: Parameters, errors: Mapping[str, Sequence[str]]
) -> tuple[list[Control], list[Control]]:
    """Return the controls that are always in sight, and those under "more"."""
    fields = SearchParameters().fields
    names = [str(name) for name in fields]
    rest = [name for name in names if name not in IN_SIGHT and name not in _NOT_OFFERED]
    made = {
        name: _control(name, fields[name], given, tuple(errors.get(name, ())))
        for name in (*IN_SIGHT, *rest)
        if name in fields
    }
    return [made[n] for n in IN_SIGHT if n in made], [made[n] for n in rest]


def against(given: Parameters, url: QueryDict) -> list[Control]:
    """Return the controls of the other settings that the answer is compared with.

    What the URL leaves out is as in `given`, except that the fusion differs.
    """
    fields = SearchParameters().fields
    found = []
    for name in COMPARABLE:
        if name not in fields:
            continue
        value = url.get(AGAINST + name) or given.first(name)
        if name == "fusion" and not any(url.get(AGAINST + n) for n in COMPARABLE):
            value = "rrf" if given.first(name, "rrf") != "rrf" else "dense_only"
        other = _control(name, fields[name], given.with_(**{name: value}), ())
        found.append(
            Control(AGAINST + name, other.label, other.kind, value, other.help, other.options)
        )
    return found


def with_errors(others: Iterable[Control], errors: Mapping[str, Sequence[str]]) -> list[Control]:
    """Return the controls of the other settings with the messages of their parameters."""
    return [
        replace(control, errors=tuple(errors.get(control.name.removeprefix(AGAINST), ())))
        for control in others
    ]


def against_parameters(given: Parameters, others: Iterable[Control]) -> Parameters:
    """Return the parameters of the other side of a comparison."""
    return given.with_(**{c.name.removeprefix(AGAINST): c.value for c in others if c.value})


def _control(
    name: str,
    field: serializers.Field[Any, Any, Any, Any],
    given: Parameters,
    errors: tuple[str, ...],
) -> Control:
    default = "" if field.default is serializers.empty else field.default
    value = given.first(name)
    shown: dict[str, Any] = {}
    kind = "text"
    if isinstance(field, serializers.BooleanField):
        kind, chosen = "select", value or str(bool(default)).lower()
        shown["options"] = tuple((v, w, v == chosen) for v, w in (("true", "on"), ("false", "off")))
    elif isinstance(field, serializers.ChoiceField):
        kind, shown["options"] = "select", _options(field, value, str(default))
    elif isinstance(field, serializers.IntegerField):
        kind, value = "number", value or str(default)
        shown |= {"minimum": field.min_value, "maximum": field.max_value}
    elif isinstance(field, serializers.ListField):
        kind, value = _LINES, "\n".join(v for n, v in given.pairs if n == name)
    elif isinstance(field, serializers.DateTimeField):
        shown["placeholder"] = "2026-01-31T09:00:00Z"
    label = _LABELS.get(name, name.replace("_", " "))
    shown["is_set"] = value.casefold() not in {"", str(default).casefold()}
    return Control(name, label, kind, value, str(field.help_text or ""), errors=errors, **shown)


def _options(
    field: serializers.ChoiceField, value: str, default: str
) -> tuple[tuple[str, str, bool], ...]:
    words = [str(word) for word in field.choices if word != ANY]
    chosen = default if value in {"", ANY} else value
    options = [(word, word, word == chosen) for word in words]
    if chosen and chosen not in words:  # keep what was sent in sight of its error
        options.insert(0, (chosen, chosen, True))
    return tuple(options) if default else (("", "any", not chosen), *options)


def _with_blank_query(values: Mapping[str, Any]) -> ValidationError:
    """Return the errors of `values`, among them that a query is needed."""
    found: dict[str, Any] = {}
    try:
        to_request({**values, "query": "?"})
    except ValidationError as error:
        found = dict(messages_by_field(error))
    needed = ErrorDetail("A query is needed: say what to look for.", code="blank")
    return ValidationError({"query": [needed], **found})
