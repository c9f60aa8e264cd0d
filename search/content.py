"""`include_content`: the text of the first documents and wiki pages among what is shown.

It comes from the index, which holds up to 8,000 characters of each row. Where GITHUB_TOKEN is set,
the whole file is fetched from GitHub, and the index's text stands in for a file that did not come.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from search import conf, github
from search.remote import RemoteError
from search.types import Hit, Neighbour, Row, ScannedRow

# As many as the reference shows: each is a call to GitHub.
FILES_OF_A_TYPE: Final = 5

T = TypeVar("T", Hit, Neighbour, ScannedRow)


@dataclass(frozen=True, slots=True)
class Content:
    """A text and where it comes from: `index` or `github`."""

    text: str
    source: str


def read(shown: Iterable[Row], degrade: Callable[[str, str], None]) -> dict[str, Content]:
    """Return the content, by vector_id, of the first five documents and five wiki pages of `shown`.

    The rows carry their indexed text. Never raises; files that GitHub did not give are named by
    one call of `degrade` with the stage `content` and a reason.
    """
    chosen = _first(shown)
    contents = {row.vector_id: Content(row.content or "", "index") for row in chosen}
    if not chosen or not conf.get("GITHUB_TOKEN"):
        return contents
    failed: list[tuple[Row, RemoteError]] = []
    for row, file in zip(chosen, github.fetch(chosen), strict=True):
        if isinstance(file, RemoteError):
            failed.append((row, file))
        else:
            contents[row.vector_id] = Content(file, "github")
    if failed:
        row, error = failed[0]
        degrade(
            "content",
            f"{len(failed)} of {len(chosen)} files are shown as indexed; for {row.doc_path} of "
            f"{row.repo} GitHub {error}",
        )
    return contents


def attach(items: Sequence[T], contents: Mapping[str, Content]) -> tuple[T, ...]:
    """Return the items with the content of their rows, where there is one."""
    return tuple(
        replace(item, content=content.text, content_source=content.source)
        if (content := contents.get(item.row.vector_id))
        else item
        for item in items
    )


def _first(shown: Iterable[Row]) -> list[Row]:
    rows = list(shown)
    return [
        row
        for type_ in github.TYPES
        for row in [row for row in rows if row.type == type_][:FILES_OF_A_TYPE]
    ]
