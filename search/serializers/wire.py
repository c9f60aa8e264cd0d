"""From bytes to parameters: query strings and JSON bodies, read strictly."""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import IO, Any, Final
from urllib.parse import parse_qsl

from rest_framework.exceptions import ErrorDetail, ParseError, ValidationError
from rest_framework.fields import Field, ListField
from rest_framework.parsers import JSONParser

from search.serializers.fields import Flag, WholeNumber
from search.serializers.request import Parameters, SearchParameters, printable

# The longest allowed query takes 96,000 bytes as JSON escapes; the filters some more.
MAX_BODY_BYTES: Final = 256 * 1024
MAX_QUERY_PARAMETERS: Final = 100

_MOST_DIGITS: Final = 9
_FLAGS: Final = {"true": True, "false": False}


def from_query_string(
    raw: str, parameters: type[Parameters] = SearchParameters
) -> dict[str, object]:
    """Return the parameters of a query string as WSGI has it, with values as JSON has them.

    Raises ParseError where it is not UTF-8, ValidationError for a repeated parameter.
    """
    values: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in _pairs(raw):
        values[name].append(value)
    return from_texts(values, parameters)


def from_texts(
    texts: Mapping[str, list[str]], parameters: type[Parameters] = SearchParameters
) -> dict[str, object]:
    """Return values as JSON has them for parameters that were given as text, each once or more.

    A list stays a list; text that is no number or flag stays text, for the field to refuse.
    Raises ValidationError for a repeated parameter that is not a list.
    """
    known = parameters().fields
    repeated = {
        name: [ErrorDetail("Is given more than once.", code="repeated")]
        for name, found in texts.items()
        if len(found) > 1 and name in known and not isinstance(known[name], ListField)
    }
    if repeated:
        raise ValidationError(repeated)
    return {name: _value(known.get(name), found) for name, found in texts.items()}


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


def _value(field: Field[Any, Any, Any, Any] | None, texts: list[str]) -> object:
    if isinstance(field, ListField):
        return texts
    text = texts[-1]
    if isinstance(field, WholeNumber):
        return _whole_number(text)
    return _FLAGS.get(text, text) if isinstance(field, Flag) else text


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
