"""The lexical normaliser: one pure function for index text and query text alike.

A difference between the two sides loses results silently, so both call `normalise`, and the
index stores `NORMALISER_VERSION`; `check` and every search compare it with the one in this file.

What it does, in order:

1. NFKC fold, so that full-width letters, half-width kana and decomposed accents meet.
2. Runs of scripts written without spaces (Han, kana, Hangul, Thai, ...) are cut into words by
   ICU's word breaker with locale `ja`, the breaker behind JavaScript's `Intl.Segmenter`.
3. Everything else is read as identifiers: `src/app/getUser.py` is kept whole *and* split, at
   `/`, then at the other connectors, then at case changes.
4. A token that holds a character which PostgreSQL's text parser would split at is written with
   that character as `ꞏ<hex>ꞏ` (`c++` becomes `cꞏ2bꞏꞏ2bꞏ`), so one token stays one lexeme under
   every database locale.

The result is for engines, not for people; stored `content` is never changed.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from icu4py import icu_version
from icu4py.breakers import WordBreaker

# Raise the first figure when the tokens of any text change: an index must then be rebuilt.
NORMALISER_VERSION = f"1/icu-{icu_version.split('.')[0]}"

# PostgreSQL drops words of 2 kB; a longer "identifier" is a blob whose whole form nobody types.
MAX_TOKEN = 128

# U+A78F, a letter in every Unicode-aware locale that no natural text uses next to hex digits.
_ESCAPE = "\ua78f"

_MARKS = "".join(
    c for i in range(sys.maxunicode + 1) if unicodedata.category(c := chr(i))[0] == "M"
)
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3041-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_WORD = rf"[^\W{_SPACELESS}]+(?:[{_MARKS}]+[^\W{_SPACELESS}]*)*"
# What may stand between two words of one identifier: a.b, src/app, POL-358, foo::bar, don't.
_JOIN = r"[./\\:@\-'+#&=~%>]{1,2}"
_PIECE = re.compile(
    rf"(?P<spaceless>[{_SPACELESS}][{_SPACELESS}{_MARKS}]*)"
    rf"|(?P<identifier>[#@$.]?{_WORD}(?:{_JOIN}{_WORD})*(?:\+\+|\#|\+)?)"
    r"|(?P<symbol>[^\s\w\x00-\x7f])"
)
_SEPARATORS = re.compile(r"[/\\]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORDS = re.compile(rf"[^\W_{_MARKS}][^\W_]*(?:[{_MARKS}]+[^\W_]*)*")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})


def segment(text: str) -> list[str]:
    """Cut `text` at ICU word boundaries (locale `ja`), dropping white space.

    The same splits as JavaScript's `Intl.Segmenter("ja", {granularity: "word"})`. Lone
    surrogates, which ICU refuses, count as U+FFFD.
    """
    return [word for word in WordBreaker(_repair(text), "ja") if not word.isspace()]


def tokens(text: str) -> Iterator[str]:
    """Yield the lexical tokens of `text`, in reading order, lower-cased and parser-safe."""
    folded = unicodedata.normalize("NFKC", _repair(text)).translate(_APOSTROPHES)
    for match in _PIECE.finditer(folded):
        piece = match.group()
        if match.lastgroup == "spaceless":
            yield from (_safe(word) for word in segment(piece))
        elif match.lastgroup == "identifier":
            yield from _identifier_tokens(piece)
        elif unicodedata.category(piece) == "So":  # emoji and dingbats carry meaning; `(` does not
            yield _safe(piece)


def normalise(text: str) -> str:
    """Return the tokens of `text` joined by one space; empty when it holds no word at all."""
    return " ".join(tokens(text))


@lru_cache(maxsize=65_536)  # code repeats its names: five times faster on real diffs
def _identifier_tokens(identifier: str) -> tuple[str, ...]:
    """Return `a/b.c` whole, then each path part whole (`b.c`), then each word (`a`, `b`, `c`)."""
    if identifier.isalnum() and (identifier.islower() or identifier.isdecimal()):
        return (_safe(identifier),)
    path_parts = _SEPARATORS.split(identifier) if _SEPARATORS.search(identifier) else []
    forms = dict.fromkeys(map(_safe, (identifier, *path_parts, *_words(identifier))))
    return tuple(form for form in forms if form)


def _words(identifier: str) -> Iterator[str]:
    for snake in _WORDS.findall(identifier):
        yield snake
        if humps := _HUMP.sub(" ", snake).split()[1:]:
            yield from (_HUMP.sub(" ", snake).split()[0], *humps)


def _safe(token: str) -> str:
    """Lower-case `token` and spell out what a text parser would split at; '' if it is too long."""
    folded = token.casefold()
    if len(folded) > MAX_TOKEN:
        return "" if not folded.isalnum() else folded[:MAX_TOKEN]
    if folded.isalnum():
        return folded
    return "".join(c if c.isalnum() else f"{_ESCAPE}{ord(c):x}{_ESCAPE}" for c in folded)


def _repair(text: str) -> str:
    """Replace lone surrogates and NUL, which neither ICU nor PostgreSQL accepts."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
