"""Whole files from GitHub: documents by the contents API, wiki pages from the raw host.

Paths and slugs come from the index, so from strangers: they are encoded segment by segment, and an
address can only lie below the base of its host. The token goes to the contents API alone, and
nothing is followed to another host.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import httpx2

from search import conf, remote
from search.links import encode_path
from search.remote import RemoteError
from search.types import Row

# A repository that was renamed takes one, to an address that lasts.
_MAX_REDIRECTS: Final = 2
_RAW_MEDIA_TYPE: Final = "application/vnd.github.raw+json"
_USER_AGENT: Final = "ragsite"  # GitHub refuses calls without one

File = str | RemoteError


@dataclass(frozen=True, slots=True)
class _Get:
    """One file: its address, and what goes to that host only."""

    url: httpx2.URL
    headers: Mapping[str, str] = field(repr=False)


def fetch(rows: Sequence[Row]) -> list[File]:
    """Return the file of each row as it is now, or why there is none; at the same time for all.

    Rows must be of a type in `TYPES`. Bounded by SEARCH_CONTENT_TIMEOUT_MS over all and
    SEARCH_CONTENT_MAX_BYTES each; a call is made once. Never raises.
    """
    seconds = conf.get("SEARCH_CONTENT_TIMEOUT_MS") / 1000
    try:
        return remote.run(partial(_fetch_all, rows=rows, seconds=seconds), seconds=seconds)
    except RemoteError as error:
        return [error for _ in rows]


async def _fetch_all(
    client: httpx2.AsyncClient, *, rows: Sequence[Row], seconds: float
) -> list[File]:
    return list(await asyncio.gather(*(_fetch(client, row, seconds) for row in rows)))


async def _fetch(client: httpx2.AsyncClient, row: Row, seconds: float) -> File:
    try:
        async with remote.in_time(seconds):
            return await _get(client, TYPES[row.type](row))
    except RemoteError as error:
        return error


async def _get(client: httpx2.AsyncClient, get: _Get) -> str:
    """Read a file, following redirects on its own host; raises RemoteError."""
    url = get.url
    for _ in range(1 + _MAX_REDIRECTS):
        async with client.stream("GET", url, headers=get.headers) as response:
            if response.has_redirect_location:
                url = url.join(response.headers["Location"])
                if _origin(url) != _origin(get.url):
                    raise RemoteError("sent the call to another host")
                continue
            remote.check_head(response)
            if response.headers.get("Content-Type", "").partition(";")[0] == "application/json":
                raise RemoteError("has a folder there, not a file")
            body = await remote.read_body(response, conf.get("SEARCH_CONTENT_MAX_BYTES"))
            return body.decode("utf-8-sig", "replace")
    raise RemoteError("redirected more than once")


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _doc(row: Row) -> _Get:
    headers = {
        "Accept": _RAW_MEDIA_TYPE,
        "Authorization": f"Bearer {conf.get('GITHUB_TOKEN')}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    path = f"repos/{_segments(row.repo)}/contents/{_segments(row.doc_path)}"
    return _below("SEARCH_GITHUB_API_URL", path, headers)


def _wiki_page(row: Row) -> _Get:
    page = f"{row.doc_path}.{row.wiki_extension or 'md'}"
    path = f"wiki/{_segments(row.repo)}/{_segments(page)}"
    return _below("SEARCH_GITHUB_RAW_URL", path, {})


# The types of which GitHub has a file, and how to ask for it.
TYPES: Final[Mapping[str, Callable[[Row], _Get]]] = {"doc": _doc, "wiki_doc": _wiki_page}


def _below(base: str, path: str, headers: Mapping[str, str]) -> _Get:
    # Uncompressed, so that the bound on the body is also one on what it unfolds to.
    common = {"Accept-Encoding": "identity", "User-Agent": _USER_AGENT}
    return _Get(httpx2.URL(f"{conf.get(base).rstrip('/')}/{path}"), {**common, **headers})


def _segments(path: str) -> str:
    """Return a path percent-encoded; raises RemoteError where a segment is empty or leads up."""
    if {"", ".", ".."}.intersection(path.split("/")):
        raise RemoteError("is not asked for a path that no file can have")
    return encode_path(path)
