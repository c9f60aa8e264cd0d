"""Scans, entities and rows over REST, from the address to the JSON."""

from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.postgres import TestIndex, edge, row

SINCE = "since=2026-01-01T00:00:00Z"


@pytest.fixture
def client() -> APIClient:
    client = APIClient()
    client.force_authenticate(User(pk=1, username="someone"))
    return client


def issue(n: int, **fields: Any) -> dict[str, Any]:
    return row(
        f"i:{n}", number=n, title=f"Issue {n}", updated_at=f"2026-01-{n:02}T00:00:00Z", **fields
    )


def errors(response: Any) -> list[tuple[str | None, str]]:
    return [(e["attr"], e["code"]) for e in response.json()["errors"]]


def test_a_scan_is_written_as_the_reference_writes_it(index: TestIndex, client: APIClient) -> None:
    index.load([issue(1, content="Issue 1\n\nbody"), issue(2)])
    answer = client.get(f"/api/search?{SINCE}&top_k=1&sort=updated_desc").json()
    assert (answer["count"], answer["mode"], answer["sort"]) == (1, "scan", "updated_desc")
    assert (answer["since"], answer["until"]) == ("2026-01-01T00:00:00Z", None)
    assert answer["truncated"] is True
    assert [one["title"] for one in answer["results"]] == ["Issue 2"]
    rest = client.get(f"/api/search?{SINCE}&page={quote(answer['next_page'])}").json()
    assert (rest["truncated"], rest["next_page"]) == (False, None)
    assert rest["results"] == [
        {
            "number": 1,
            "title": "Issue 1",
            "state": "open",
            "type": "issue",
            "labels": [],
            "milestone": "",
            "assignees": [],
            "url": "https://github.com/acme/app/issues/1",
            "updated_at": "2026-01-01T00:00:00Z",
            "created_at": None,
            "repo": "acme/app",
            "entity_key": "thread:acme/app:1",
            "vector_id": "i:1",
            "snippet": {"text": "Issue 1 body", "marks": []},
        }
    ]


@pytest.mark.parametrize("query", ["", "query=", "query=%20%09", "sort=created_desc&rerank=true"])
def test_a_blank_query_scans(index: TestIndex, client: APIClient, query: str) -> None:
    index.load([issue(1)])
    assert client.get(f"/api/search?{query}").json()["mode"] == "scan"


def test_get_and_post_scan_the_same(index: TestIndex, client: APIClient) -> None:
    index.load([issue(n) for n in range(1, 6)])
    body = {"query": "", "since": "2026-01-01T00:00:00Z", "top_k": 2}
    posted = client.post("/api/search", body).json()
    got = client.get(f"/api/search?{SINCE}&top_k=2").json()
    assert posted["results"] == got["results"]
    page = client.post("/api/search", {**body, "page": posted["next_page"]}).json()
    assert [one["number"] for one in page["results"]] == [3, 2]


def test_a_page_that_was_altered_is_400(index: TestIndex, client: APIClient) -> None:
    index.load([issue(n) for n in range(1, 4)])
    page = client.get(f"/api/search?{SINCE}&top_k=1").json()["next_page"]
    for wrong in (page[:-1], f"x{page}", "x", "%F0%9F%99%82"):
        response = client.get(f"/api/search?{SINCE}&page={wrong}")
        assert response.status_code == 400
        assert errors(response) == [("page", "invalid")]


def test_an_entity_is_listed_page_by_page(index: TestIndex, client: APIClient) -> None:
    path = "docs/ü b:c.md"
    files = [
        row(
            f"c:{n}",
            type="diff",
            file_path=path,
            commit_sha=f"{n:07}",
            updated_at=f"2026-01-0{n}T00:00:00Z",
        )
        for n in range(1, 4)
    ]
    index.load([*files, row("d:1", type="doc", doc_path=path)])
    address = f"/api/entities/{quote(f'file:acme/app:{path}')}"
    first = client.get(f"{address}?limit=3").json()
    assert first["entity_key"] == f"file:acme/app:{path}"
    assert [one["vector_id"] for one in first["rows"]] == ["c:3", "c:2", "c:1"]
    assert first["rows"][0]["commit_sha"] == "0000003"
    assert "content" not in first["rows"][0]
    rest = client.get(f"{address}?cursor={quote(first['next_cursor'])}").json()
    assert [one["vector_id"] for one in rest["rows"]] == ["d:1"]
    assert (rest["count"], rest["next_cursor"]) == (1, None)


def test_a_result_leads_to_its_entity_and_its_row(index: TestIndex, client: APIClient) -> None:
    index.load([row("w:a/b", type="wiki_doc", doc_path="a b", content="anchor")])
    query = "/api/search?query=anchor&fusion=sparse_only"
    [result] = client.get(query).json()["results"]
    entity = client.get(f"/api/entities/{quote(result['entity_key'])}").json()
    assert [one["vector_id"] for one in entity["rows"]] == ["w:a/b"]
    found = client.get("/api/rows/w:a/b").json()
    assert (found["content"], found["content_source"]) == ("anchor", "index")
    assert found["entity_key"] == result["entity_key"]


@pytest.mark.parametrize(
    ("path", "status", "found"),
    [
        ("entities/file:acme/app:none.md", 404, (None, "not_found")),
        ("entities/nonsense", 400, ("key", "invalid")),
        ("entities/thread:acme/app:x", 400, ("key", "invalid")),
        ("entities/row:%00", 400, ("key", "invalid")),
        ("entities/thread:acme/app:1?limit=0", 400, ("limit", "min_value")),
        ("entities/thread:acme/app:1?limit=101", 400, ("limit", "max_value")),
        ("entities/thread:acme/app:1?limit=x", 400, ("limit", "invalid")),
        ("entities/thread:acme/app:1?cursor=x", 400, ("cursor", "invalid")),
        ("entities/thread:acme/app:1?page=x", 400, ("page", "unknown")),
        ("entities/thread:acme/app:1?limit=1&limit=2", 400, ("limit", "repeated")),
        ("rows/none", 404, (None, "not_found")),
        ("rows/%00", 400, ("vector_id", "invalid")),
        ("rows/i:1?limit=1", 400, ("limit", "unknown")),
    ],
)
def test_what_is_wrong_or_missing_is_said(
    index: TestIndex, client: APIClient, path: str, status: int, found: tuple[str | None, str]
) -> None:
    index.load([issue(1)])
    response = client.get(f"/api/{path}")
    assert response.status_code == status
    assert errors(response) == [found]


@pytest.mark.parametrize("path", ["entities/row:1", "rows/1"])
def test_nobody_reads_rows(path: str) -> None:
    assert APIClient().get(f"/api/{path}").status_code == 401


@pytest.mark.parametrize("method", ["post", "put", "delete", "options"])
def test_rows_are_read_only(client: APIClient, method: str) -> None:
    assert client.generic(method.upper(), "/api/entities/row:1").status_code == 405


def test_an_empty_index_is_503(index: TestIndex, client: APIClient) -> None:
    for path in ("search", "entities/row:1", "rows/1"):
        assert client.get(f"/api/{path}").status_code == 503


def test_neighbours_and_content_come_over_rest(index: TestIndex, client: APIClient) -> None:
    pages = {"Home": "anchor", "Rota": "who is on call"}
    index.load(
        [row(f"w:{n}", type="wiki_doc", doc_path=n, content=text) for n, text in pages.items()],
        [edge("w:Home", "w:Rota")],
    )
    query = "/api/search?query=anchor&fusion=sparse_only&top_k=1"
    answer = client.get(f"{query}&graph_expand=true&graph_hops=2&include_content=true").json()
    assert (answer["count"], answer["graph_expanded"], answer["graph_neighbors"]) == (2, True, 1)
    home, rota = answer["results"]
    assert (home["content"], rota["content"]) == ("anchor", "who is on call")
    assert (rota["graph_hop"], rota["graph_from"], rota["score"]) == (1, "Home", 0)
    assert rota["url"] == "https://github.com/acme/app/wiki/Rota"
    plain = client.get(query).json()
    assert (plain["count"], plain["graph_expanded"], plain["graph_neighbors"]) == (1, False, 0)
    assert "content" not in plain["results"][0]
