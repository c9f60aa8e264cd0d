"""SQL text of SQLite as a stream of tokens: data to read, never a program to run.

Memory is bounded by the longest value that D1 itself stores; anything longer is passed over.
"""

import codecs
import re
from typing import Final, NamedTuple

from indexer.errors import BadRecord, BadSource
from indexer.packed import Packed

LONGEST_VALUE: Final = 2_000_000  # D1's limit for a text, a blob or a row
_BLOCK: Final = 65_536
_AHEAD: Final = 1_024  # characters to have in hand; more than the longest unquoted token

_SPACE: Final = re.compile(r"[ \t\r\n\f\v]*")
_NUMBER: Final = re.compile(
    r"0[xX][0-9a-fA-F]{1,16}|(?:\d{1,99}(?:\.\d{0,99})?|\.\d{1,99})(?:[eE][+-]?\d{1,9})?"
)
_WORD: Final = re.compile(r"[^\W\d][\w$]{0,199}")
_CLOSING: Final = {"'": "'", '"': '"', "`": "`", "[": "]"}


class Token(NamedTuple):
    """`kind` is text, blob (hex digits), number, name (quoted), word, mark or end."""

    kind: str
    text: str

    @property
    def keyword(self) -> str:
        """The word in capitals, '' for what is no bare word."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def mark(self) -> str:
        """The punctuation mark, '' for anything else."""
        return self.text if self.kind == "mark" else ""


END: Final = Token("end", "")


class Lexer:
    """Reads tokens; `line` is the line of the last one, from 1.

    Bytes that are no UTF-8 become lone surrogates, for the caller to repair and count.
    """

    def __init__(self, source: Packed) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text = ""
        self._at = 0
        self._counted = 0  # up to here newlines are in `_lines`
        self._lines = 1
        self._ended = False
        self.line = 1

    def next(self, *, keep: bool = True) -> Token:
        """Take a token; without `keep` the text of a quoted one is passed over.

        Raises BadRecord for a value that is too long, after its end, and BadSource where the text
        ends within a quoted token.
        """
        if not self._skip_blank():
            return END
        self._count_lines()
        self.line = self._lines
        character = self._text[self._at]
        if character in _CLOSING:
            kind = "text" if character == "'" else "name"
            return Token(kind, self._quoted(1, keep=keep))
        if character in "xX" and self._text.startswith("'", self._at + 1):
            return Token("blob", self._quoted(2, keep=keep))
        for kind, pattern in (("number", _NUMBER), ("word", _WORD)):
            if match := pattern.match(self._text, self._at):
                self._at = match.end()
                return Token(kind, match.group())
        length = 2 if self._text.startswith("||", self._at) else 1
        self._at += length
        return Token("mark", self._text[self._at - length : self._at])

    def _quoted(self, opening: int, *, keep: bool) -> str:
        """Take a token up to its closing mark, which stands doubled where it is meant."""
        closing = _CLOSING[self._text[self._at + opening - 1]]
        self._at += opening
        parts: list[str] = []
        size = 0
        while True:
            end = self._text.find(closing, self._at)
            part = self._text[self._at : end if end >= 0 else None]
            size += len(part)
            if keep and size <= LONGEST_VALUE:
                parts.append(part)
            self._at += len(part)
            if end < 0:
                if not self._fill():
                    raise BadSource(f"{self._source.name} is cut short after line {self.line}")
                continue
            self._at += 1
            self._have(1)
            if closing == "]" or not self._text.startswith(closing, self._at):
                break
            self._at += 1
            parts.append(closing if keep and size <= LONGEST_VALUE else "")
        if keep and size > LONGEST_VALUE:
            raise BadRecord(f"a value is longer than {LONGEST_VALUE:,} characters")
        return "".join(parts)

    def _skip_blank(self) -> bool:
        """Pass over white space and comments; False at the end of the text."""
        while True:
            self._have(_AHEAD)
            if match := _SPACE.match(self._text, self._at):
                self._at = match.end()
            if self._at == len(self._text):
                if not self._fill():
                    return False
            elif self._text.startswith("--", self._at):
                self._skip_past("\n")
            elif self._text.startswith("/*", self._at):
                self._at += 2
                self._skip_past("*/")
            elif len(self._text) - self._at >= _AHEAD or not self._fill():
                return True

    def _skip_past(self, mark: str) -> None:
        """A comment may lack its end at the end of the text."""
        while (end := self._text.find(mark, self._at)) < 0:
            # The mark may lie across two blocks.
            self._at = max(self._at, len(self._text) - len(mark) + 1)
            if not self._fill():
                self._at = len(self._text)
                return
        self._at = end + len(mark)

    def _have(self, characters: int) -> None:
        while len(self._text) - self._at < characters and self._fill():
            pass

    def _fill(self) -> bool:
        """Read on and forget what was taken; False at the end of the text."""
        if self._ended:
            return False
        self._count_lines()
        data = self._source.read(_BLOCK)
        self._ended = not data
        self._text = self._text[self._at :] + self._decoder.decode(data, final=self._ended)
        self._at = self._counted = 0
        return True

    def _count_lines(self) -> None:
        self._lines += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
