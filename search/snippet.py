"""The passage of a row that shows why it was found (pure)."""

import re
import unicodedata
from collections.abc import Iterable

from search.normalise import segment
from search.types import Snippet

SHORT_WORD = 3  # letters; a shorter one is marked only where it is the whole word
# One ASCII letter, or one or two hiragana: grammar more often than meaning.
_PARTICLE = re.compile(r"[a-zA-Z]|[\u3041-\u309f]{1,2}")
LONGEST_WORD = 64  # of the query; a longer one would fill the passage
LENGTH = 240  # characters: three lines of a result card


def snippet(content: str, query: str, *, length: int = LENGTH) -> Snippet:
    """Return the passage of at most `length` characters that holds the most words of `query`.

    Longer words count more, since they are rarer; the earliest of equal passages wins; content
    without any of the words gives its beginning. White space is folded to single spaces, and
    `…` marks a cut. Marks are offsets into the returned text.
    """
    text = " ".join(content.split())
    spans = list(_find(text, _query_words(query)))
    start = _best_start(spans, length)
    # Step back to show what precedes the first word, without leaving the text.
    start = max(0, min(start - length // 6, len(text) - length))
    end = min(len(text), start + length)
    lead = "…" if start else ""
    shift = len(lead) - start
    marks = tuple((a + shift, b + shift) for a, b in spans if start <= a and b <= end)
    return Snippet(lead + text[start:end] + ("…" if end < len(text) else ""), marks)


def _query_words(query: str) -> list[str]:
    """Return the words of the query worth marking: no single letters, no kana particles."""
    words = dict.fromkeys(segment(unicodedata.normalize("NFKC", query)))
    return [
        w for w in words if w[0].isalnum() and len(w) <= LONGEST_WORD and not _PARTICLE.fullmatch(w)
    ]


def _find(text: str, words: Iterable[str]) -> Iterable[tuple[int, int]]:
    """Yield [start, end) of each word in `text`, ASCII words at word starts only."""
    patterns = [
        (r"(?<![^\W_])" if word.isascii() else "")
        + re.escape(word)
        # `to` is not in `tool`, while `delegat` may be in `delegation`.
        + (r"(?![^\W_])" if word.isascii() and len(word) <= SHORT_WORD else "")
        for word in sorted(words, key=len, reverse=True)
    ]
    if not patterns:
        return
    for match in re.finditer("|".join(patterns), text, re.IGNORECASE):
        yield match.span()


def _best_start(spans: list[tuple[int, int]], length: int) -> int:
    """Return the start of the window of `length` whose marked characters weigh most."""
    best, best_weight, weight, tail = 0, 0, 0, 0
    for start, end in spans:
        weight += end - start
        while end - spans[tail][0] > length * 5 // 6:
            weight -= spans[tail][1] - spans[tail][0]
            tail += 1
        if weight > best_weight:
            best, best_weight = spans[tail][0], weight
    return best
