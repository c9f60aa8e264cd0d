"""The values of an INSERT as dumps of SQLite write them: literals, and three functions of text.

Line ends are written by `replace('a\\nb','\\n',char(10))`, by older shells as `'a'||char(10)||'b'`,
by newer ones as `unistr('a\\u000ab')`. Nothing else is evaluated, and no result may be longer than
what D1 stores.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from indexer.d1_lexer import LONGEST_VALUE, Token
from indexer.errors import BadRecord

Value = str | int | float | bytes | None

_MOST_CODE_POINT: Final = 0x10FFFF
_REPLACEMENT: Final = 0xFFFD  # SQLite's answer to a number that is no character
_ESCAPE: Final = re.compile(
    r"\\(?:\\|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|\+([0-9a-fA-F]{6})|([0-9a-fA-F]{4})|)"
)
_CONSTANTS: Final[Mapping[str, Value]] = {"NULL": None, "TRUE": 1, "FALSE": 0}


def literal(token: Token) -> Value:
    """Return the value of a token; raises BadRecord where it is none."""
    if token.kind == "text":
        return token.text
    if token.kind == "number":
        return number(token.text)
    if token.kind == "blob":
        try:
            return bytes.fromhex(token.text)
        except ValueError:
            raise BadRecord("a blob holds something else than hexadecimal digits") from None
    if token.keyword in _CONSTANTS:
        return _CONSTANTS[token.keyword]
    raise BadRecord(f"a value was expected, not {describe(token)}")


def number(text: str) -> int | float:
    """Return a number of SQL text; an integer of more than 64 bits is a float, as in SQLite."""
    if text[:2] in {"0x", "0X"}:
        return int(text, 16)
    if text.isdecimal() and (whole := int(text)) < 2**63:
        return whole
    return float(text)


def negative(value: Value) -> Value:
    """Return a number with its sign changed; raises BadRecord where it is none."""
    if not isinstance(value, int | float):
        raise BadRecord("a sign stands before something that is no number")
    return -value


def concatenate(values: Sequence[Value]) -> Value:
    """Return the texts of values joined; NULL if one is NULL."""
    if any(value is None for value in values):
        return None
    texts = [as_text(value) for value in values]
    _check(sum(map(len, texts)))
    return "".join(texts)


def call(name: str, arguments: Sequence[Value]) -> Value:
    """Return what a function of SQLite gives; raises BadRecord for any but the three."""
    function = _FUNCTIONS.get(name.lower())
    if function is None:
        raise BadRecord(f"the function {name} is not one that dumps use")
    return function(arguments)


def as_text(value: Value) -> str:
    """Return a value as text, a blob read as UTF-8 (other bytes as lone surrogates)."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return "" if value is None else str(value)


def describe(token: Token) -> str:
    """Return a token as a message shows it."""
    return "the end of the file" if token.kind == "end" else repr(token.text[:40])


def _replace(arguments: Sequence[Value]) -> Value:
    _expect("replace", arguments, 3)
    if any(value is None for value in arguments):
        return None
    text, old, new = map(as_text, arguments)
    if not old:
        return text
    _check(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _char(arguments: Sequence[Value]) -> Value:
    codes = [value if isinstance(value, int) else 0 for value in arguments]
    return "".join(chr(c if 0 <= c <= _MOST_CODE_POINT else _REPLACEMENT) for c in codes)


def _unistr(arguments: Sequence[Value]) -> Value:
    _expect("unistr", arguments, 1)
    return None if arguments[0] is None else _ESCAPE.sub(_unescape, as_text(arguments[0]))


def _unescape(match: re.Match[str]) -> str:
    digits = next(filter(None, match.groups()), None)
    if digits is None:
        if match.group() == "\\\\":
            return "\\"
        raise BadRecord("unistr holds an escape that is none")
    return str(_char([int(digits, 16)]))


def _expect(name: str, arguments: Sequence[Value], count: int) -> None:
    if len(arguments) != count:
        raise BadRecord(f"{name} takes {count} values, not {len(arguments)}")


def _check(length: int) -> None:
    if length > LONGEST_VALUE:
        raise BadRecord(f"a value is longer than {LONGEST_VALUE:,} characters")


_FUNCTIONS: Final[Mapping[str, Callable[[Sequence[Value]], Value]]] = {
    "replace": _replace,
    "char": _char,
    "unistr": _unistr,
}
