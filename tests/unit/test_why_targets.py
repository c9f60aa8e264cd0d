"""How a text that names a thing is read."""

from hashlib import sha256
from typing import Any

import pytest

from search.targets import readings

GITHUB = "https://github.com"
ANCHOR = sha256(b"a.md").hexdigest()


def values(text: str) -> list[dict[str, Any]]:
    """The values of each reading, the first (a row's id) left out."""
    first, *others = readings(text)
    assert first.values == {"t_id": text.strip()}
    return [dict(target.values) for target in others]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("o/r#12", {"t_repo": "o/r", "t_number": 12}),
        ("thread:o/r:12", {"t_repo": "o/r", "t_number": 12}),
        (f"{GITHUB}/o/r/issues/12", {"t_repo": "o/r", "t_number": 12}),
        (f"{GITHUB}/o/r/pull/12/files", {"t_repo": "o/r", "t_number": 12}),
        ("file:o/r:a:b.md", {"t_repo": "o/r", "t_path": "a:b.md"}),
        ("row:x:y", {"t_id": "x:y"}),
        ("o/r@C0FFEE", {"t_repo": "o/r", "t_sha": "c0ffee%"}),
        (f"{GITHUB}/o/r/commit/c0ffee1", {"t_repo": "o/r", "t_sha": "c0ffee1%"}),
        (f"{GITHUB}/o/r/wiki/Home-%E3%81%82", {"t_repo": "o/r", "t_path": "Home-あ"}),
        (f"{GITHUB}/o/r/wiki", {"t_repo": "o/r", "t_path": "Home"}),
        (f"{GITHUB}/o/r/releases/tag/v1%2F2", {"t_repo": "o/r", "t_tag": "v1/2"}),
        (f"{GITHUB}/o/r/blob/main/a%20b.md?plain=1#L3", {"t_repo": "o/r", "t_path": "a b.md"}),
    ],
)
def test_a_name_is_read(text: str, expected: dict[str, Any]) -> None:
    assert values(text)[0] == expected


@pytest.mark.parametrize(
    ("fragment", "column"),
    [
        ("issuecomment-99", "comment_id"),
        ("discussion_r99", "comment_id"),
        ("pullrequestreview-99", "review_id"),
    ],
)
def test_a_fragment_names_a_comment_of_the_thread(fragment: str, column: str) -> None:
    _, comment, thread = readings(f"{GITHUB}/o/r/pull/7#{fragment}")
    assert f"{column} = %(t_part)s" in comment.condition
    assert comment.values == {"t_repo": "o/r", "t_number": 7, "t_part": 99}
    assert thread.values == {"t_repo": "o/r", "t_number": 7}


def test_the_anchor_of_a_file_in_a_commit_is_its_hash() -> None:
    file, commit = values(f"{GITHUB}/o/r/commit/c0ffee1#diff-{ANCHOR}R12")
    assert file == {"t_repo": "o/r", "t_sha": "c0ffee1%", "t_anchor": ANCHOR}
    assert commit == {"t_repo": "o/r", "t_sha": "c0ffee1%"}


def test_a_branch_may_hold_slashes() -> None:
    paths = [found["t_path"] for found in values(f"{GITHUB}/o/r/blob/feature/x/docs/a.md")]
    assert paths == ["x/docs/a.md", "docs/a.md", "a.md"]


def test_a_path_may_be_a_file_or_a_wiki_page() -> None:
    assert values("o/r:Home") == [{"t_repo": "o/r", "t_path": "Home"}] * 2


@pytest.mark.parametrize(
    "text",
    [
        "anything", "o/r", "o/r#0", "o/r#99999999999", "o/r#x", f"{GITHUB}/o", f"{GITHUB}/o/r",
        f"{GITHUB}/o/r/issues/", f"{GITHUB}/o/r/issues/9999999999999", "javascript:alert(1)",
        "https://example.com/o/r/issues/1", "https://[bad/o/r/issues/1", "ftp://github.com/o/r/issues/1",
        f"{GITHUB}/o/r/blob/main/%00", f"{GITHUB}/o/r/commit/%25",
    ],
)  # fmt: skip
def test_what_names_no_place_is_tried_as_a_row_alone(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize("text", ["", "  ", "o/r#1\0"])
def test_what_cannot_be_stored_means_nothing(text: str) -> None:
    assert readings(text) == ()
