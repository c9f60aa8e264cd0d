"""What a person means who names a thing: a row's id, an entity's key, owner/repo#12, an address.

A text may be read in several ways; each reading is a condition on search_docs that an index
answers. The readings come in the order in which they should be tried.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_LARGEST_NUMBER: Final = 2**31 - 1  # of the columns that hold numbers of issues
_LARGEST_ID: Final = 2**63 - 1  # of the columns that hold ids of comments
_HOSTS: Final = frozenset({"github.com", "www.github.com"})
_REPO: Final = r"(?P<repo>[^/:\s#@]+/[^/:\s#@]+)"


@dataclass(frozen=True, slots=True)
class Target:
    """Rows that a text may mean: `condition` holds for them, with `values` for its parameters."""

    meaning: str
    condition: str
    values: Mapping[str, Any]


_FILE: Final = (
    "repo = %(t_repo)s AND type IN ('doc', 'diff') AND ((doc_path = %(t_path)s AND doc_path <> '')"
    " OR (file_path = %(t_path)s AND file_path <> ''))"
)
_WIKI: Final = (
    "repo = %(t_repo)s AND doc_path = %(t_path)s AND doc_path <> '' AND type = 'wiki_doc'"
)
_THREAD: Final = "repo = %(t_repo)s AND number = %(t_number)s AND number <> 0"
_COMMIT: Final = "repo = %(t_repo)s AND commit_sha LIKE %(t_sha)s AND commit_sha <> ''"
_ANCHORED: Final = "encode(sha256(convert_to(file_path, 'UTF8')), 'hex') = %(t_anchor)s"


def readings(text: str) -> tuple[Target, ...]:
    """Return what `text` may mean, likeliest first; never empty for text that holds something.

    Takes a vector_id, an entity key, `owner/repo#12`, `owner/repo:path`, `owner/repo@sha` or an
    address on github.com. Text that PostgreSQL cannot hold means nothing.
    """
    text = text.strip()
    if not text or "\0" in text:
        return ()
    row = Target("the row", "vector_id = %(t_id)s", {"t_id": text})
    return (row, *(_address(text) if "://" in text else _short(text)))


def _short(text: str) -> Iterator[Target]:
    for pattern, read in _SHORT:
        if match := pattern.fullmatch(text):
            yield from read(**match.groupdict())


def _thread(repo: str, number: str) -> Iterator[Target]:
    if (value := _bounded(number, _LARGEST_NUMBER)) is not None:
        yield Target(f"{repo}#{value}", _THREAD, {"t_repo": repo, "t_number": value})


def _file(repo: str, path: str) -> Iterator[Target]:
    yield Target(f"the file {path} of {repo}", _FILE, {"t_repo": repo, "t_path": path})


def _wiki(repo: str, path: str) -> Iterator[Target]:
    yield Target(f"the wiki page {path} of {repo}", _WIKI, {"t_repo": repo, "t_path": path})


def _path(repo: str, path: str) -> Iterator[Target]:
    yield from _file(repo, path)
    yield from _wiki(repo, path)


def _commit(repo: str, sha: str, anchor: str = "") -> Iterator[Target]:
    values = {"t_repo": repo, "t_sha": f"{sha.lower()}%"}
    if anchor:
        condition = f"{_COMMIT} AND {_ANCHORED}"
        yield Target(f"a file of commit {sha[:7]}", condition, {**values, "t_anchor": anchor})
    yield Target(f"commit {sha[:7]} of {repo}", _COMMIT, values)


def _row(vector_id: str) -> Iterator[Target]:
    yield Target("the row", "vector_id = %(t_id)s", {"t_id": vector_id})


_SHORT: Final[tuple[tuple[re.Pattern[str], Callable[..., Iterator[Target]]], ...]] = (
    (re.compile(rf"thread:{_REPO}:(?P<number>[0-9]+)", re.ASCII), _thread),
    (re.compile(rf"file:{_REPO}:(?P<path>.+)", re.DOTALL), _file),
    (re.compile(r"row:(?P<vector_id>.+)", re.DOTALL), _row),
    (re.compile(rf"{_REPO}#(?P<number>[0-9]+)", re.ASCII), _thread),
    (re.compile(rf"{_REPO}@(?P<sha>[0-9a-fA-F]{{4,40}})"), _commit),
    (re.compile(rf"{_REPO}:(?P<path>.+)", re.DOTALL), _path),
)


def _address(text: str) -> Iterator[Target]:
    """Read an address below https://github.com/owner/repo/."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return
    if parts.scheme not in {"http", "https"} or (parts.hostname or "") not in _HOSTS:
        return
    owner, repo, kind, *rest = [*map(unquote, parts.path.strip("/").split("/")), "", "", ""]
    rest = [segment for segment in rest if segment]
    if "\0" in unquote(parts.path) or not repo:
        return
    if read := _ADDRESSES.get(kind):
        yield from read(f"{owner}/{repo}", rest, unquote(parts.fragment))


def _of_thread(repo: str, rest: list[str], fragment: str) -> Iterator[Target]:
    for column, pattern in _FRAGMENTS.items():
        match = pattern.fullmatch(fragment)
        if match and (value := _bounded(match[1], _LARGEST_ID)) is not None:
            condition = f"{_THREAD} AND {column} = %(t_part)s"
            for thread in _thread(repo, rest[0] if rest else ""):
                values = {**thread.values, "t_part": value}
                yield Target(f"a comment of {thread.meaning}", condition, values)
    yield from _thread(repo, rest[0] if rest else "")


def _of_blob(repo: str, rest: list[str], _fragment: str) -> Iterator[Target]:
    # A branch may hold slashes: the longest path, so the shortest branch, is tried first.
    for start in range(1, len(rest)):
        yield from _file(repo, "/".join(rest[start:]))


def _of_commit(repo: str, rest: list[str], fragment: str) -> Iterator[Target]:
    sha = rest[0] if rest else ""
    if re.fullmatch(r"[0-9a-fA-F]{4,40}", sha):
        anchor = re.fullmatch(r"diff-([0-9a-f]{64}).*", fragment)
        yield from _commit(repo, sha, anchor[1] if anchor else "")


def _of_wiki(repo: str, rest: list[str], _fragment: str) -> Iterator[Target]:
    yield from _wiki(repo, "/".join(rest) or "Home")


def _of_release(repo: str, rest: list[str], _fragment: str) -> Iterator[Target]:
    if rest[:1] == ["tag"]:
        condition = "repo = %(t_repo)s AND type = 'release' AND tag_name = %(t_tag)s"
        tag = "/".join(rest[1:])
        yield Target(f"release {tag} of {repo}", condition, {"t_repo": repo, "t_tag": tag})


_FRAGMENTS: Final = {
    "comment_id": re.compile(r"(?:issuecomment-|discussion_r)([0-9]+)", re.ASCII),
    "review_id": re.compile(r"pullrequestreview-([0-9]+)", re.ASCII),
}
_ADDRESSES: Final[Mapping[str, Callable[[str, list[str], str], Iterator[Target]]]] = {
    "issues": _of_thread,
    "pull": _of_thread,
    "blob": _of_blob,
    "raw": _of_blob,
    "blame": _of_blob,
    "edit": _of_blob,
    "commits": _of_blob,
    "commit": _of_commit,
    "wiki": _of_wiki,
    "releases": _of_release,
}


def _bounded(digits: str, largest: int) -> int | None:
    """Return a number above zero that a column can hold, else None."""
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(largest)):
        return None
    return value if 0 < (value := int(digits)) <= largest else None
