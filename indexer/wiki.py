"""A wiki from a clone of its git repository: pages by slug, and the mentions between them.

The slug is what GitHub's address of a page ends in: the file's name without folders and extension,
with dashes for spaces and plus signs.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from indexer import git_docs, git_history, records
from indexer.git import Repository
from indexer.git_history import Objects, vector_id
from indexer.git_text import decode, is_binary
from indexer.github_report import GitHubReport
from indexer.github_rows import Item
from indexer.github_store import RowStore
from indexer.records import MAX_CONTENT, Values, clean
from indexer.store import Writer

_RULES: Final = 1  # a change of what is made of a page: all are made again
# The languages that GitHub's wikis know.
EXTENSIONS: Final = (
    *("md", "markdown", "mdown", "mkd", "mkdn", "rst", "rest", "adoc", "asciidoc", "asc"),
    *("org", "textile", "rdoc", "creole", "mediawiki", "wiki", "pod"),
)
_LONGEST_EXTENSION: Final = 5  # of other files
# Shown beside every page: their links say nothing of a page.
_FRAMES: Final = frozenset({"_sidebar", "_footer", "_header"})
# Fenced blocks, and spans on one line.
_CODE: Final = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)|\Z)"
    r"|(?P<ticks>`+)(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL | re.MULTILINE,
)
_DOUBLE: Final = re.compile(r"\[\[([^\[\]\n]{1,500})\]\]")
_LINK: Final = re.compile(r"(?<!!)\[[^\[\]\n]{0,500}\]\(\s*<?([^()<>\s]{1,500})>?[^()\n]{0,500}\)")

OnProgress = Callable[[str, int, int, int], None]


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page: its slug, the extension of its file, what it says, when it was changed last."""

    slug: str
    extension: str
    text: str
    updated: datetime | None


def index_wiki(
    repository: Repository,
    repo: str,
    writer: Writer,
    rows: RowStore,
    report: GitHubReport,
    on_progress: OnProgress,
) -> None:
    """Bring the wiki pages and mentions of `repo` to the state of a clone.

    Pages and mentions that are gone are deleted. Raises BadSource where git fails.
    """
    _, tip = repository.branch(None)
    key, state = f"github-wiki:{repo}", {"commit": tip, "rules": _RULES}
    if not writer.fresh and writer.recall(key) == state:
        return
    pages = {page.slug: page for page in _pages(repository, tip, report)}
    report.items += len(pages)
    items = [_item(repo, page) for page in pages.values()]
    edges = list(mentions(repo, pages, report))
    gone = rows.ids("wiki_doc") - {item.vector_id for item in items}
    while items:
        some, items = items[:100], items[100:]
        rows.put(some, {})
        done = len(pages) - len(items)
        on_progress("wiki pages", done, len(pages), report.tally.inserted + report.tally.updated)
    _delete_other_edges(writer, repo, edges)
    rows.put([], {key: state}, deleted=gone, edges=edges)


def slug_of(name: str) -> str:
    """Return the slug of a page's name."""
    return re.sub(r"[ +]", "-", name)


def mentions(repo: str, pages: Mapping[str, WikiPage], report: GitHubReport) -> Iterator[Values]:
    """Yield the mentions between pages: [[Page]], [[text|Page]] and [text](Page).

    A page that is mentioned need not exist. Capitals, dashes and spaces make no difference.
    """
    known = {_folded(slug): slug for slug in pages}
    for page in pages.values():
        targets: dict[str, None] = {}
        for target in _targets(_CODE.sub(" ", page.text), repo):
            slug = _slug_meant(target, known)
            if slug and slug != page.slug:
                targets[slug] = None
        for slug in targets:
            yield records.parse_edge(
                {
                    "src_vector_id": _id(repo, page.slug),
                    "dst_vector_id": _id(repo, slug),
                    "repo": repo,
                    "src_slug": page.slug,
                    "dst_slug": slug,
                    "edge_kind": "mention",
                    "updated_at": page.updated.isoformat() if page.updated else None,
                },
                repairs=report.repairs,
            )


def _pages(repository: Repository, tip: str, report: GitHubReport) -> Iterator[WikiPage]:
    names = git_docs.pattern_of(f"*.{extension}" for extension in EXTENSIONS)
    # Those in the main folder first: of two with one slug, GitHub shows that.
    docs = sorted(
        git_docs.documents(repository, tip, names, report.repairs),
        key=lambda doc: (doc.path.count("/"), doc.path),
    )
    taken: set[str] = set()
    with git_history.objects(repository) as objects:
        skipped = repository.shallow_commits()
        dates = git_docs.last_changes(
            repository, tip, names=names, skipped=skipped, objects=objects
        )
        for doc in docs:
            path = PurePosixPath(doc.path)
            slug = slug_of(path.stem)
            if path.stem.lower() in _FRAMES:
                report.notes.add("left out: sidebar, header or footer of the wiki", doc.path)
            elif _folded(slug) in taken:
                report.notes.add("left out: wiki page whose name another page has", doc.path)
            elif (text := _text(doc, objects, report)) is not None:
                taken.add(_folded(slug))
                yield WikiPage(slug, path.suffix[1:], text, dates.get(doc.path))


def _text(doc: git_docs.Doc, objects: Objects, report: GitHubReport) -> str | None:
    """Return what a page says, None (noted) for a binary file."""
    data = objects.read(doc.blob)
    if is_binary(data):
        report.notes.add("left out: binary file named as a wiki page", doc.path)
        return None
    return clean(decode(data, report.repairs, "wiki page"), report.repairs)


def _item(repo: str, page: WikiPage) -> Item:
    key = _id(repo, page.slug)
    updated = page.updated.isoformat() if page.updated else None
    record: dict[str, Any] = {
        "vector_id": key,
        "repo": repo,
        "type": "wiki_doc",
        "state": "active",
        "created_at": updated,
        "updated_at": updated,
        "doc_path": page.slug,
        "wiki_extension": page.extension,
        "title": page.slug,
        "content": f"{page.slug}\n\n{page.text}"[:MAX_CONTENT],
    }
    return Item(f"wiki page {page.slug}", key, record)


def _id(repo: str, slug: str) -> str:
    return vector_id("w", repo, slug)


def _folded(name: str) -> str:
    return slug_of(name).casefold()


def _slug_meant(target: str, known: Mapping[str, str]) -> str:
    """Return the slug of a page that is mentioned, '' where the name is rather another file's."""
    stem = _without_extension(target)
    for name in (target, stem):
        if slug := known.get(_folded(name)):
            return slug
    return "" if _is_file(stem) else slug_of(stem)


def _targets(text: str, repo: str) -> Iterator[str]:
    """Yield the names of the pages that a text links to."""
    for inside in _DOUBLE.findall(text):
        target = inside.rpartition("|")[2].partition("#")[0].strip()
        if target and "://" not in target:
            yield target.rpartition("/")[2]
    for address in _LINK.findall(text):
        if target := _page_of_address(address, repo):
            yield target


def _page_of_address(address: str, repo: str) -> str:
    """Return the page that a link's address names, '' where it names something else."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    path = unquote(parts.path)
    wiki = f"/{repo}/wiki/".casefold()
    if parts.scheme or parts.netloc:
        if parts.hostname != "github.com" or not path.casefold().startswith(wiki):
            return ""
    elif path.startswith("/") and not path.casefold().startswith(wiki):
        return ""
    path = path.strip("/")
    folder, _, name = path.rpartition("/")
    # Beside the page, or in the wiki by a path; other folders are the repository's.
    if folder.rpartition("/")[2] not in {"", ".", "..", "wiki"}:
        return ""
    return clean(name, records.Repairs())


def _is_file(name: str) -> bool:
    """Return whether a name ends like a file's that is no page."""
    _, dot, extension = name.rpartition(".")
    return bool(dot) and extension.isalpha() and len(extension) <= _LONGEST_EXTENSION


def _without_extension(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    return stem if dot and extension.lower() in EXTENSIONS else name


def _delete_other_edges(writer: Writer, repo: str, edges: list[Values]) -> None:
    """Delete the mentions of a repository that are not among `edges`."""
    ends = [f"{edge['src_vector_id']} {edge['dst_vector_id']}" for edge in edges]
    writer.connection.execute(
        """
        DELETE FROM doc_edges
         WHERE repo = %(repo)s AND edge_kind = 'mention'
           AND src_vector_id || ' ' || dst_vector_id <> ALL(%(ends)s)
        """,
        {"repo": repo, "ends": ends},
    )
