"""Titles and addresses of rows of every type, and what a path of a stranger cannot do to them."""

from hashlib import sha256
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search import links
from search.types import ROW_TYPES, Row


def row(type_: str, **fields: Any) -> Row:
    texts = dict.fromkeys(
        ("milestone", "tag_name", "doc_path", "wiki_extension", "commit_sha", "file_path",
         "file_status", "commit_author", "author", "title"),
        "",
    )  # fmt: skip
    numbers = dict.fromkeys(("number", "comment_id", "review_id", "line"), 0)
    times = dict.fromkeys(("created_at", "updated_at", "commit_date"))
    values: dict[str, Any] = {
        "vector_id": "x:1", "repo": "o/r", "type": type_, "state": "open", "labels": (),
        "assignees": (), **texts, **numbers, **times, **fields,
    }  # fmt: skip
    return Row(**values)


ANCHOR = sha256(b"a b/c.py").hexdigest()
SHOWN: list[tuple[Row, str, str]] = [
    (row("issue", number=7, title="Retry"), "Retry", "issues/7"),
    (row("pull_request", number=8, title="Fix"), "Fix", "pull/8"),
    (row("release", tag_name="v1/2", title="First"), "First", "releases/tag/v1/2"),
    (row("doc", doc_path="docs/ü b.md"), "docs/ü b.md", "blob/HEAD/docs/%C3%BC%20b.md"),
    (row("wiki_doc", doc_path="Home?"), "Home?", "wiki/Home%3F"),
    (
        row("diff", file_path="a b/c.py", commit_sha="601aa38ffff"),
        "601aa38 a b/c.py",
        f"commit/601aa38ffff#diff-{ANCHOR}",
    ),
    (
        row("issue_comment", number=7, author="ann", comment_id=9),
        "ann on #7",
        "issues/7#issuecomment-9",
    ),
    (
        row("pr_review", number=8, author="ann", state="APPROVED", review_id=9),
        "ann APPROVED on #8",
        "pull/8#pullrequestreview-9",
    ),
    (
        row("pr_review_comment", number=8, author="ann", file_path="a.py", line=3, comment_id=9),
        "ann @ a.py:3",
        "pull/8#discussion_r9",
    ),
]


@pytest.mark.parametrize(("shown", "title", "address"), SHOWN, ids=lambda v: getattr(v, "type", ""))
def test_each_type_has_its_title_and_its_address(shown: Row, title: str, address: str) -> None:
    assert links.title(shown) == title
    assert links.url(shown) == f"https://github.com/o/r/{address}"


def test_all_types_are_here() -> None:
    assert {shown.type for shown, _, _ in SHOWN} == set(ROW_TYPES)


def test_a_row_without_a_title_has_its_id() -> None:
    assert links.title(row("issue", number=7)) == "x:1"


@given(st.text(), st.sampled_from(["doc", "wiki_doc", "release"]))
def test_an_address_never_leaves_its_repository(path: str, type_: str) -> None:
    url = urlsplit(links.url(row(type_, doc_path=path, tag_name=path)))
    assert (url.scheme, url.netloc, url.query, url.fragment) == ("https", "github.com", "", "")
    assert not {".", ".."}.intersection(url.path.split("/"))
    assert unquote(url.path).endswith(path.encode("utf-8", "replace").decode())
