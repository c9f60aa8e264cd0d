"""Snippets: the passage that holds most of the query, and what is marked in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.snippet import LENGTH, snippet


def marked(content: str, query: str) -> list[str]:
    found = snippet(content, query)
    return [found.text[start:end] for start, end in found.marks]


@pytest.mark.parametrize(
    ("content", "query", "expected"),
    [
        ("the retry limit", "Retry LIMIT", ["retry", "limit"]),
        ("tools to build", "to", ["to"]),
        ("delegations", "delegation", ["delegation"]),
        ("subagent への委譲が必須になった", "委譲はいつ必須になったか", ["委譲", "必須"]),
        ("a b c", "a", []),
        ("no such word", "lighthouse", []),
        ("C++ and C#", "C++", []),
    ],
)
def test_what_is_marked(content: str, query: str, expected: list[str]) -> None:
    assert marked(content, query) == expected


def test_the_passage_is_where_the_words_are() -> None:
    found = snippet("filler " * 500 + "the retry limit " + "filler " * 500, "retry limit")
    assert "the retry limit" in found.text
    assert found.text.startswith("…")
    assert found.text.endswith("…")


@given(st.text(max_size=2_000), st.text(max_size=80))
def test_marks_lie_inside_a_bounded_text(content: str, query: str) -> None:
    found = snippet(content, query)
    assert len(found.text) <= LENGTH + 2
    assert all(0 <= start < end <= len(found.text) for start, end in found.marks)
