"""The endpoint before the index is asked: errors, status codes, who may ask and how often."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from search import services
from search.errors import IndexUnavailable, InvalidRequest, RankerUnavailable, SearchError
from search.types import SearchRequest, SearchResult, StageTrace

URL = "/api/search"


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[SearchRequest]:
    """The requests that reached the service, which answers with nothing found."""
    requests: list[SearchRequest] = []

    def search(*, request: SearchRequest) -> SearchResult:
        requests.append(request)
        return SearchResult(request, (), StageTrace({}, (), 0, 0, 1, {}, {}))

    monkeypatch.setattr(services, "search", search)
    return requests


@pytest.fixture
def client() -> APIClient:
    """A client of a user that no database knows."""
    client = APIClient()
    client.force_authenticate(User(pk=1, username="someone"))
    return client


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two requests an hour for everybody."""
    cache.clear()
    rates = {"user": "2/hour", "anon": "2/hour"}
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", rates)
    yield
    cache.clear()


def errors(response: Any) -> list[tuple[str | None, str, str]]:
    """Return (attr, code, detail) of each error of an answer."""
    return [(e["attr"], e["code"], e["detail"]) for e in response.json()["errors"]]


@pytest.mark.parametrize(
    ("query_string", "attr", "code", "text"),
    [
        ("query=a&rerank=maybe", "rerank", "invalid", "true or false"),
        ("query=a&graph_hops=3", "graph_hops", "max_value", "2"),
        ("query=a&page=x", "page", "invalid", "scans only"),
        ("page=x", "page", "invalid", "earlier answer"),
        ("query=a&topk=3", "topk", "unknown", "Did you mean top_k?"),
        ("query=a&format=xml", "format", "unknown", "Known:"),
        ("query=a&query=b", "query", "repeated", "more than once"),
        ("query=a%00", "query", "null_characters_not_allowed", "Null"),
        ("query=a&type=%00", "type", "invalid_choice", "Must be one of"),
        ("query=a&%00=1", "\0", "unknown", "Known:"),
        ("query=%FF", None, "parse_error", "UTF-8"),
        ("query=a&top_k=1e1", "top_k", "invalid", "whole number"),
        ("query=a&top_k=99", "top_k", "max_value", "50"),
        ("query=a&since=2026-01-31T09:00:00+09:00", "since", "lost_plus", "%2B"),
        ("query=a&since=2026-01-31T09:00:00", "since", "naive", "zone"),
        ("query=a&labels=", "labels.0", "blank", "blank"),
    ],
)
def test_a_wrong_query_string_is_400(
    client: APIClient, query_string: str, attr: str | None, code: str, text: str
) -> None:
    response = client.get(f"{URL}?{query_string}")
    assert response.status_code == 400
    [found] = errors(response)
    assert found[:2] == (attr, code)
    assert text in found[2]


def test_a_query_string_that_django_refuses_is_400(client: APIClient) -> None:
    many = "&".join(f"a{n}=1" for n in range(2000))
    response = client.get(f"{URL}?{many}")
    assert response.status_code == 400
    assert errors(response) == [(None, "parse_error", "The request cannot be read.")]


@pytest.mark.parametrize(
    ("body", "attr", "code"),
    [
        (b'{"query": "a", "rerank": "true"}', "rerank", "invalid"),
        (b'{"query": null}', "query", "null"),
        (b'{"query": "a", "top_k": "10"}', "top_k", "invalid"),
        (b'{"query": "a", "top_k": true}', "top_k", "invalid"),
        (b'{"query": "a", "labels": "bug"}', "labels", "not_a_list"),
        (b'{"query": "\\ud800"}', "query", "surrogate_characters_not_allowed"),
        (b'{"query": "a", "\\ud800": 1}', "\\ud800", "unknown"),
        (b'{"query": "a", "query": "a"}', None, "parse_error"),
        (b'["query"]', None, "parse_error"),
        (b'{"query": "\xff"}', None, "parse_error"),
    ],
)
def test_a_wrong_body_is_400(client: APIClient, body: bytes, attr: str | None, code: str) -> None:
    response = client.post(URL, body, content_type="application/json")
    assert response.status_code == 400
    assert errors(response)[0][:2] == (attr, code)


def test_a_post_takes_nothing_from_its_query_string(client: APIClient) -> None:
    response = client.post(f"{URL}?top_k=3", {"query": "a"})
    assert response.status_code == 400
    assert "in the body" in errors(response)[0][2]


def test_get_and_post_ask_the_same(client: APIClient, asked: list[SearchRequest]) -> None:
    query = "query=a%20b&labels=x&labels=y&top_k=7&since=2026-01-31T09:00:00%2B09:00"
    body = {"query": "a b", "labels": ["x", "y"], "top_k": 7, "since": "2026-01-31T00:00:00Z"}
    assert client.get(f"{URL}?{query}").status_code == 200
    assert client.post(URL, body).status_code == 200
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("error", "expected", "found"),
    [
        (
            InvalidRequest("repo", "Is odd."),
            (400, "validation_error"),
            ("repo", "invalid", "Is odd."),
        ),
        (
            RankerUnavailable("No vectors."),
            (503, "server_error"),
            (None, "ranker_unavailable", "No vectors."),
        ),
        (
            IndexUnavailable(),
            (503, "server_error"),
            (None, "index_unavailable", "The index database did not answer."),
        ),
    ],
)
def test_errors_of_the_service_have_their_status(
    client: APIClient,
    monkeypatch: pytest.MonkeyPatch,
    error: SearchError,
    expected: tuple[int, str],
    found: tuple[str | None, str, str],
) -> None:
    def fail(*, request: SearchRequest) -> SearchResult:
        raise error

    monkeypatch.setattr(services, "search", fail)
    response = client.get(f"{URL}?query=a")
    assert (response.status_code, response.json()["type"]) == expected
    assert errors(response) == [found]


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace"])
def test_other_methods_are_405(client: APIClient, method: str) -> None:
    response = client.generic(method.upper(), URL)
    assert response.status_code == 405
    assert set(response["Allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_an_answer_that_is_not_wanted_is_406(client: APIClient) -> None:
    assert client.get(f"{URL}?query=a", headers={"accept": "text/html"}).status_code == 406


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_body_that_is_not_json_is_415(client: APIClient, content_type: str) -> None:
    assert client.post(URL, b"query=a", content_type=content_type).status_code == 415


def test_nobody_is_401() -> None:
    response = APIClient().get(f"{URL}?query=a")
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Token"
    assert errors(response)[0][1] == "not_authenticated"


@pytest.mark.parametrize("token", ["", "a b", "\xff\xfe", "a\0b", "ü"])
def test_a_token_that_cannot_be_one_is_401(token: str) -> None:
    client = APIClient(HTTP_AUTHORIZATION=f"Token {token}")
    assert client.get(f"{URL}?query=a").status_code == 401


@pytest.mark.django_db
def test_a_token_that_nobody_has_is_401() -> None:
    client = APIClient(HTTP_AUTHORIZATION="Token " + "0" * 64)
    assert client.get(f"{URL}?query=a").status_code == 401


@pytest.mark.django_db
def test_the_command_makes_a_token_that_works_until_it_expires(time_machine: Any) -> None:
    User.objects.create_user("reader")
    token = StringIO()
    call_command("create_token", "reader", "--days", "2", stdout=token, stderr=StringIO())
    client = APIClient(HTTP_AUTHORIZATION=f"Token {token.getvalue().strip()}")
    assert client.get(f"{URL}?query=a").status_code == 200
    time_machine.move_to(datetime.now(UTC) + timedelta(days=2, seconds=1))
    assert client.get(f"{URL}?query=a").status_code == 401


@pytest.mark.django_db
def test_a_token_is_stored_hashed_and_lasts_as_the_setting_says() -> None:
    user = User.objects.create_user("reader")
    token = StringIO()
    call_command("create_token", "reader", stdout=token, stderr=StringIO())
    [record] = user.auth_token_set.all()  # type: ignore[attr-defined]  # knox has no types
    assert token.getvalue().strip() not in (record.digest, record.token_key)
    assert abs(record.expiry - record.created - timedelta(days=30)) < timedelta(minutes=1)


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [["nobody"], ["off"], ["reader", "--days", "0"]])
def test_the_command_refuses(arguments: list[str]) -> None:
    User.objects.create_user("reader")
    User.objects.create_user("off", is_active=False)
    with pytest.raises(CommandError):
        call_command("create_token", *arguments)


@pytest.mark.django_db
def test_a_session_needs_its_csrf_token_to_post() -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("reader"))
    assert client.get(f"{URL}?query=a").status_code == 200
    assert client.post(URL, {"query": "a"}).status_code == 403


@pytest.mark.usefixtures("limits")
def test_too_many_requests_are_429_with_the_wait(client: APIClient) -> None:
    assert [client.get(f"{URL}?query=a").status_code for _ in range(3)] == [200, 200, 429]
    response = client.get(f"{URL}?query=a")
    assert 0 < int(response["Retry-After"]) <= 3600
    assert errors(response)[0][1] == "throttled"


@pytest.mark.usefixtures("limits")
def test_the_public_pages_are_limited_too() -> None:
    client = APIClient()
    statuses = [client.get("/api/schema").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_errors_of_any_depth_are_json(client: APIClient) -> None:
    response = client.post(URL, {"query": {"a": [1]}, "labels": [[["x"]]]})
    assert {attr for attr, _, _ in errors(response)} == {"query", "labels.0"}


@pytest.mark.parametrize("path", ["/api/search/", "/api/nope", "/api/", "/api/docs/"])
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_address_that_is_none_is_told_in_json(client: APIClient, path: str, method: str) -> None:
    response = getattr(client, method)(path)
    assert response.status_code == 404
    assert response.json()["errors"][0]["detail"].startswith("Nothing is at this address")


def test_another_scheme_than_token_is_told_which(client: APIClient) -> None:
    client.force_authenticate(None)
    response = client.get("/api/search?query=x", headers={"Authorization": "Bearer abc"})
    assert response.status_code == 401
    assert "Authorization: Token" in response.json()["errors"][0]["detail"]


def test_a_get_takes_nothing_from_its_body(client: APIClient) -> None:
    response = client.generic("GET", "/api/search", '{"query": "x"}', "application/json")
    assert response.status_code == 400
    assert "not in a body" in response.json()["errors"][0]["detail"]
