"""Titles and GitHub addresses of rows (pure).

Every piece of a path comes from strangers: each segment is percent-encoded, so an address can
only ever point below https://github.com/.
"""

from collections.abc import Callable
from hashlib import sha256
from urllib.parse import quote

from search.types import Row

GITHUB = "https://github.com"


def encode_path(path: str) -> str:
    """Percent-encode each segment of a path, dots of `.` and `..` included, keeping the slashes."""
    return "/".join(
        segment.replace(".", "%2E") if segment in {".", ".."} else quote(segment, safe="")
        for segment in path.encode("utf-8", "replace").decode().split("/")
    )


def _thread(row: Row, kind: str, fragment: str = "") -> str:
    return f"{kind}/{row.number}{fragment}"


_ADDRESSES: dict[str, Callable[[Row], str]] = {
    "doc": lambda row: f"blob/HEAD/{encode_path(row.doc_path)}",
    "wiki_doc": lambda row: f"wiki/{encode_path(row.doc_path)}",
    "release": lambda row: f"releases/tag/{encode_path(row.tag_name)}",
    "issue": lambda row: _thread(row, "issues"),
    "pull_request": lambda row: _thread(row, "pull"),
    "issue_comment": lambda row: _thread(row, "issues", f"#issuecomment-{row.comment_id}"),
    "pr_review": lambda row: _thread(row, "pull", f"#pullrequestreview-{row.review_id}"),
    "pr_review_comment": lambda row: _thread(row, "pull", f"#discussion_r{row.comment_id}"),
    # GitHub anchors a file of a commit by the SHA-256 of its path.
    "diff": lambda row: (
        f"commit/{encode_path(row.commit_sha)}"
        f"#diff-{sha256(row.file_path.encode('utf-8', 'replace')).hexdigest()}"
    ),
}

_TITLES: dict[str, Callable[[Row], str]] = {
    "doc": lambda row: row.doc_path,
    "wiki_doc": lambda row: row.doc_path,
    "diff": lambda row: f"{row.commit_sha[:7]} {row.file_path}".strip(),
    "issue_comment": lambda row: f"{row.author} on #{row.number}",
    "pr_review": lambda row: f"{row.author} {row.state} on #{row.number}",
    "pr_review_comment": lambda row: f"{row.author} @ {row.file_path}:{row.line}",
}


def url(row: Row) -> str:
    """Return the address of a row on GitHub; the repository's for a type without one of its own."""
    address = _ADDRESSES.get(row.type)
    base = f"{GITHUB}/{encode_path(row.repo)}"
    return f"{base}/{address(row)}" if address else base


def title(row: Row) -> str:
    """Return what a row is called: its own title, or one made of its fields where it has none."""
    made = _TITLES.get(row.type)
    return (made(row) if made else row.title) or row.title or row.vector_id
