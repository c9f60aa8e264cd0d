"""`include_content`: whose text comes, from where, and what GitHub can and cannot do to it."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.test.utils import override_settings

from search.services import answer
from search.types import Filters, ScanResult, SearchRequest, SearchResult
from tests.fakes import github_server as fake
from tests.fakes.github_server import GitHubServer
from tests.postgres import TestIndex, edge, row

TOKEN = "ghp_secret"
DOC = "/repos/acme/app/contents/"
WIKI = "/wiki/acme/app/"
SINCE = "2026-01-01T00:00:00Z"


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """A GitHub that the application reads whole files from."""
    with GitHubServer() as server:
        base = server.url("")
        with override_settings(
            GITHUB_TOKEN=TOKEN, SEARCH_GITHUB_API_URL=base, SEARCH_GITHUB_RAW_URL=base + "/"
        ):
            yield server


def doc(path: str, **fields: Any) -> dict[str, Any]:
    content = fields.pop("content", f"anchor indexed {path}")
    return row(f"d:{path}", type="doc", doc_path=path, content=content, **fields)


def page(slug: str, **fields: Any) -> dict[str, Any]:
    return row(f"w:{slug}", type="wiki_doc", doc_path=slug, content=f"anchor {slug}", **fields)


def ask(**options: Any) -> SearchResult:
    options = {"include_content": True, "fusion": "sparse_only", "top_k": 50, **options}
    result = answer(request=SearchRequest("anchor", **options))
    assert isinstance(result, SearchResult)
    return result


def contents(result: SearchResult | ScanResult) -> dict[str, tuple[str | None, str | None]]:
    shown = result.shown if isinstance(result, SearchResult) else result.rows
    return {one.row.vector_id: (one.content, one.content_source) for one in shown}


def reason(result: SearchResult) -> str:
    [degradation] = result.degraded
    assert degradation.stage == "content"
    assert TOKEN not in degradation.reason
    assert "a secret" not in degradation.reason
    return degradation.reason


def many() -> list[dict[str, Any]]:
    return [
        *[doc(f"{n}.md") for n in range(7)],
        *[page(f"p{n}") for n in range(7)],
        row("i:1", number=1, content="anchor issue"),
        row("c:1", type="diff", file_path="x.md", content="anchor diff"),
    ]


def test_the_first_five_documents_and_wiki_pages_come_with_their_indexed_text(
    index: TestIndex,
) -> None:
    index.load(many())
    result = ask()
    assert result.degraded == ()
    expected: dict[str, tuple[str | None, str | None]] = {}
    left = {"doc": 5, "wiki_doc": 5}
    for hit in result.hits:
        has = left.get(hit.row.type, 0) > 0
        expected[hit.row.vector_id] = (hit.row.content, "index") if has else (None, None)
        left[hit.row.type] = left.get(hit.row.type, 0) - 1
    assert contents(result) == expected
    assert sum(source == "index" for _, source in expected.values()) == 10


def test_off_sends_no_request_and_shows_no_text(index: TestIndex, github: GitHubServer) -> None:
    index.load(many())
    assert set(contents(ask(include_content=False)).values()) == {(None, None)}
    assert github.requests == []


def test_without_a_token_no_request_is_sent(index: TestIndex, github: GitHubServer) -> None:
    index.load(many())
    with override_settings(GITHUB_TOKEN=""):
        assert contents(ask())["d:0.md"] == ("anchor indexed 0.md", "index")
    assert github.requests == []


def test_whole_files_come_from_github(index: TestIndex, github: GitHubServer) -> None:
    index.load([doc("docs/ü b.md"), page("Home", wiki_extension="org"), page("Rota")])
    github.files |= {
        f"{DOC}docs/%C3%BC%20b.md": fake.serve("\ufeffwhole Ω".encode()),
        f"{WIKI}Home.org": fake.serve(b"org page", "text/plain"),
        f"{WIKI}Rota.md": fake.serve(b"\xff page", "text/plain"),
    }
    result = ask()
    assert result.degraded == ()
    assert contents(result) == {
        "d:docs/ü b.md": ("whole Ω", "github"),
        "w:Home": ("org page", "github"),
        "w:Rota": ("\ufffd page", "github"),
    }
    by_path = {request.path: request.headers for request in github.requests}
    assert by_path[f"{DOC}docs/%C3%BC%20b.md"]["authorization"] == f"Bearer {TOKEN}"
    assert by_path[f"{DOC}docs/%C3%BC%20b.md"]["accept"] == "application/vnd.github.raw+json"
    for path, headers in by_path.items():
        assert headers["accept-encoding"] == "identity"
        assert ("authorization" in headers) is path.startswith(DOC), "the token is for the API"


def test_a_scan_has_content_too(index: TestIndex, github: GitHubServer) -> None:
    index.load([doc("a.md", updated_at=SINCE), doc("b.md", updated_at=SINCE)])
    github.files[f"{DOC}a.md"] = fake.serve(b"whole")
    filters = Filters(since=datetime.fromisoformat(SINCE))
    result = answer(request=SearchRequest("", filters, include_content=True))
    assert isinstance(result, ScanResult)
    assert contents(result) == {
        "d:a.md": ("whole", "github"),
        "d:b.md": ("anchor indexed b.md", "index"),
    }
    assert [d.stage for d in result.degraded] == ["content"]


def test_neighbours_share_the_five_places(index: TestIndex) -> None:
    pages = [page(f"p{n}") for n in range(4)]
    far = [row(f"w:x{n}", type="wiki_doc", doc_path=f"x{n}", content="far") for n in range(3)]
    index.load([*pages, *far], [edge("w:p0", f"w:x{n}") for n in range(3)])
    result = ask(graph_expand=True)
    assert [one.content for one in result.neighbours] == ["far", None, None]
    assert all(hit.content for hit in result.hits)


FAILURES: dict[str, tuple[fake.Reply, str]] = {
    "missing": (fake.status(404), "answered with status 404"),
    "forbidden": (fake.status(403), "answered with status 403"),
    "broken": (fake.status(500), "answered with status 500"),
    "folder": (fake.serve(b"[]", "application/json; charset=utf-8"), "has a folder there"),
    "compressed": (
        fake.serve(b"x", fake.RAW, ("Content-Encoding", "gzip")),
        "in a compressed form",
    ),
    "too large": (fake.serve(b"x" * 10_001), "more than 10,000 bytes"),
    "endless": (fake.endless, "more than 10,000 bytes"),
    "hang": (fake.hang, "did not answer within 400 ms"),
    "off GitHub": (fake.redirect("http://localhost:9/x"), "sent the call to another host"),
    "off GitHub, relative": (fake.redirect("//example.com/x"), "sent the call to another host"),
    "another scheme": (fake.redirect("file:///etc/passwd"), "sent the call to another host"),
    "in a circle": (fake.redirect(f"{DOC}a.md"), "redirected more than once"),
    "no address": (fake.redirect("http://[/"), "sent the call to another host"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_file_that_does_not_come_is_shown_as_indexed(
    index: TestIndex, github: GitHubServer, name: str
) -> None:
    reply, text = FAILURES[name]
    index.load([doc("a.md", content="anchor"), doc("b.md")])
    github.files |= {f"{DOC}a.md": reply, f"{DOC}b.md": fake.serve(b"whole")}
    started = time.monotonic()
    with override_settings(SEARCH_CONTENT_MAX_BYTES=10_000, SEARCH_CONTENT_TIMEOUT_MS=400):
        result = ask()
    assert time.monotonic() - started < 3
    assert contents(result) == {"d:a.md": ("anchor", "index"), "d:b.md": ("whole", "github")}
    assert reason(result).startswith(
        "1 of 2 files are shown as indexed; for a.md of acme/app GitHub"
    )
    assert text in reason(result)


def test_a_renamed_repository_is_followed_on_the_same_host(
    index: TestIndex, github: GitHubServer
) -> None:
    index.load([doc("a.md")])
    github.files[f"{DOC}a.md"] = fake.redirect("/repositories/1/contents/a.md")
    github.files["/repositories/1/contents/a.md"] = fake.redirect(github.url("/moved"), 307)
    github.files["/moved"] = fake.serve(b"whole")
    assert contents(ask()) == {"d:a.md": ("whole", "github")}


def test_another_host_never_hears_of_the_call(index: TestIndex, github: GitHubServer) -> None:
    index.load([doc("a.md")])
    with GitHubServer() as elsewhere:
        elsewhere.files["/a.md"] = fake.serve(b"theirs")
        github.files[f"{DOC}a.md"] = fake.redirect(elsewhere.url("/a.md"), 302)
        assert contents(ask()) == {"d:a.md": ("anchor indexed a.md", "index")}
        assert elsewhere.requests == []


def test_files_are_fetched_at_the_same_time(index: TestIndex, github: GitHubServer) -> None:
    def slow(handler: fake.Handler) -> None:
        time.sleep(0.3)
        fake.serve(b"whole")(handler)

    index.load(many())
    github.files |= {f"{DOC}{n}.md": slow for n in range(7)}
    github.files |= {f"{WIKI}p{n}.md": slow for n in range(7)}
    started = time.monotonic()
    result = ask()
    assert time.monotonic() - started < 1.5
    assert len(github.requests) == 10
    assert result.degraded == ()


@pytest.mark.parametrize("path", ["../../user", "a/../b.md", "a//b.md", "/a.md", "./a.md", "a/."])
def test_a_path_that_no_file_can_have_is_not_asked_for(
    index: TestIndex, github: GitHubServer, path: str
) -> None:
    index.load([doc(path)])
    result = ask()
    assert github.requests == []
    assert "no file can have" in reason(result)


@pytest.mark.parametrize("repo", ["acme/app/../../user", "..", "acme/app?x=", "acme/app#"])
def test_a_repository_leads_nowhere_else(index: TestIndex, github: GitHubServer, repo: str) -> None:
    index.load([doc("a.md", repo=repo)])
    ask()
    assert all("?" not in r.path and r.path.startswith("/repos/") for r in github.requests)


@pytest.mark.parametrize("base", ["http://127.0.0.1:9", "nonsense", "http://[", "ftp://x", ""])
def test_a_host_that_is_not_there_costs_the_files_alone(index: TestIndex, base: str) -> None:
    index.load([doc("a.md")])
    with override_settings(GITHUB_TOKEN=TOKEN, SEARCH_GITHUB_API_URL=base):
        result = ask()
    assert contents(result)["d:a.md"][1] == "index"
    assert reason(result)


def test_a_token_that_no_header_can_hold_costs_the_files_alone(
    index: TestIndex, github: GitHubServer
) -> None:
    index.load([doc("a.md")])
    with override_settings(GITHUB_TOKEN="ü\n" + TOKEN):
        assert "cannot be called" in reason(ask())
