"""From bytes to parameters: query strings and JSON bodies, read strictly."""

import json
from collections import defaultdict
from typing import IO, Any, Final
from urllib.parse import parse_qsl

from rest_framework.exceptions import ErrorDetail, ParseError, ValidationError
from rest_framework.parsers import JSONParser

from search.serializers.request import SearchParameters, printable

# The longest allowed query takes 96,000 bytes as JSON escapes; the filters some more.
MAX_BODY_BYTES: Final = 256 * 1024
MAX_QUERY_PARAMETERS: Final = 100

_REPEATED: Final = frozenset({"labels"})
_MOST_DIGITS: Final = 9


def from_query_string(raw: str) -> dict[str, object]:
    """Return the parameters of a query string as WSGI has it: `labels` a list, `top_k` a number.

    Raises ParseError where it is not UTF-8, ValidationError for a repeated parameter.
    """
    values: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in _pairs(raw):
        values[name].append(value)
    known = SearchParameters().fields
    repeated = {
        name: [ErrorDetail("Is given more than once.", code="repeated")]
        for name, found in values.items()
        if len(found) > 1 and name in known and name not in _REPEATED
    }
    if repeated:
        raise ValidationError(repeated)
    parameters: dict[str, object] = {
        name: found if name in _REPEATED else found[-1] for name, found in values.items()
    }
    if isinstance(number := parameters.get("top_k"), str):
        parameters["top_k"] = _whole_number(number)
    return parameters


class StrictJSONParser(JSONParser):
    """A JSON object in UTF-8, each name once."""

    def parse(self, stream: IO[Any], *_args: Any, **_kwargs: Any) -> dict[str, Any]:
        """Return the object; raises ParseError."""
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise ParseError(f"The body is longer than {MAX_BODY_BYTES} bytes.")
        try:
            value = json.loads(
                body.decode("utf-8"),
                object_pairs_hook=_object,
                parse_constant=_refuse_constant,
            )
        except UnicodeDecodeError as error:
            raise ParseError("The body is not UTF-8.") from error
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise ParseError("The body must be a JSON object.")
        return value


def _pairs(raw: str) -> list[tuple[str, str]]:
    try:
        # WSGI hands bytes over as Latin-1.
        text = raw.encode("latin-1").decode("utf-8")
        return parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_PARAMETERS
        )
    except UnicodeError as error:
        raise ParseError("The query string is not percent-encoded UTF-8.") from error
    except ValueError as error:
        raise ParseError(f"More than {MAX_QUERY_PARAMETERS} parameters.") from error


def _whole_number(text: str) -> int | str:
    digits = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if digits else text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise ParseError(f"The body names “{printable(name)}” more than once.")
        value[name] = item
    return value


def _refuse_constant(name: str) -> None:
    raise ParseError(f"The body holds {name}, which JSON does not have.")
