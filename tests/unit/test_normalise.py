"""The lexical normaliser: what meets, what stays whole, what is split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.normalise import MAX_TOKEN, normalise, tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("全角ＡＢＣ", "全角ABC"),
        ("ﾘﾗﾝｶｰ", "リランカー"),
        ("か\u3099", "が"),
        ("don\u2019t", "don't"),
        ("ＰＯＬ－３５８", "POL-358"),
        ("Straße", "STRASSE"),
        ("\ud800", "\ufffd"),
        ("a\0b", "a\ufffdb"),
    ],
)
def test_two_ways_to_write_one_thing_meet(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wiki sync", ["wiki", "sync"]),
        ("src/app/views.py", ["src", "app", "views", "py"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("snake_case", ["snake", "case"]),
        ("#1234", ["1234"]),
        ("POL-358", ["pol", "358"]),
        ("7fd9d5e", ["7fd9d5e"]),
        ("docs/4.-Operations.md を更新", ["docs", "4", "operations", "md", "を", "更新"]),
        ("リランカーのしきい値", ["リ", "ラン", "カー", "の", "しき", "い", "値"]),
        ('" * ( ^ \\ & |', []),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert [token for token in tokens(text) if "\ua78f" not in token] == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("src/app/views.py", "src/app/views.py"),
        ("src/app/views.py", "views.py"),
        ("see POL-358.", "POL-358"),
        ("in C++, or C#", "C++"),
        ("in C++, or C#", "C#"),
        ("call foo::bar()", "foo::bar"),
        ("fixes #1234", "#1234"),
        ("ok 🙂", "🙂"),
        ("__init__.py", "__init__.py"),
    ],
)
def test_an_identifier_is_kept_whole_too(text: str, part: str) -> None:
    whole = next(iter(tokens(part)))
    assert whole in list(tokens(text))
    assert "\ua78f" in whole  # written so that no text parser splits it


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
def test_tokens_hold_letters_and_digits_only(text: str) -> None:
    for token in tokens(text):
        assert token and len(token) <= MAX_TOKEN * 8
        assert all(c.isalnum() for c in token)
        assert "\0" not in token
        token.encode()


@given(st.text(max_size=100), st.text(max_size=100))
def test_text_side_by_side_adds_up(left: str, right: str) -> None:
    assert list(tokens(f"{left}\n{right}")) == [*tokens(left), *tokens(right)]


def test_a_long_blob_keeps_no_whole_form() -> None:
    assert list(tokens("x" * 8_000)) == ["x" * MAX_TOKEN]
    assert all(len(token) <= MAX_TOKEN for token in tokens("ab-" * 3_000))
