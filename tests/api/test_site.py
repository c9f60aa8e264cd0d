"""The pages around the endpoint: schema, documentation, health, metrics, headers, login."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from health_check.checks import Database
from health_check.exceptions import ServiceUnavailable

from search.schema import EXAMPLES
from search.serializers import SearchParameters


@pytest.fixture
def schema(client: Client) -> dict[str, Any]:
    """The OpenAPI document, as it is served."""
    response = client.get("/api/schema", headers={"accept": "application/vnd.oai.openapi+json"})
    document: dict[str, Any] = response.json()
    return document


def directives(response: Any) -> dict[str, str]:
    """Return the content security policy of an answer, by directive."""
    parts = (part.strip().partition(" ") for part in response["Content-Security-Policy"].split(";"))
    return {name: values for name, _, values in parts}


def test_every_parameter_is_described_with_an_example(schema: dict[str, Any]) -> None:
    parameters = schema["paths"]["/api/search"]["get"]["parameters"]
    assert {p["name"] for p in parameters} == set(SearchParameters().fields) == set(EXAMPLES)
    for parameter in parameters:
        assert parameter["description"]
        assert parameter["example"] == EXAMPLES[parameter["name"]]
    by_name = {p["name"]: p["schema"] for p in parameters}
    assert by_name["top_k"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}
    assert by_name["fusion"]["default"] == "rrf"
    assert "pull_request" in by_name["type"]["enum"]


def test_the_examples_are_valid() -> None:
    # A page is of a scan, and a scan has no query.
    for left_out in ("page", "query"):
        examples = {name: value for name, value in EXAMPLES.items() if name != left_out}
        assert SearchParameters(data=examples).is_valid()


def test_the_answer_is_described(schema: dict[str, Any]) -> None:
    components = schema["components"]["schemas"]
    assert {"SearchResponse", "SearchHit", "SameEntity", "ErrorResponse"} <= set(components)
    assert components["Answer"]["discriminator"]["mapping"] == {
        "search": "#/components/schemas/SearchResponse",
        "scan": "#/components/schemas/ScanResponse",
    }
    for operation in schema["paths"]["/api/search"].values():
        assert set(operation["responses"]) >= {"200", "400", "401", "406", "429", "503"}
        assert operation["security"] == [{"token": []}, {"cookieAuth": []}]


@pytest.mark.parametrize("path", ["/api/entities/{key}", "/api/rows/{vector_id}"])
def test_the_addresses_of_entities_and_rows_are_described(
    schema: dict[str, Any], path: str
) -> None:
    operation = schema["paths"][path]["get"]
    assert set(operation["responses"]) >= {"200", "400", "401", "404", "429", "503"}
    [in_path] = [p for p in operation["parameters"] if p["in"] == "path"]
    assert f"{{{in_path['name']}}}" in path


def test_labels_are_said_to_be_all_wanted_and_types_to_take_all(schema: dict[str, Any]) -> None:
    parameters = schema["paths"]["/api/search"]["get"]["parameters"]
    by_name = {p["name"]: p for p in parameters}
    assert "all of these labels" in by_name["labels"]["description"]
    assert by_name["labels"]["schema"]["type"] == "array"
    for name in ("type", "state"):
        assert "all" in by_name[name]["schema"]["enum"]
    assert by_name["rerank"]["schema"] == {"type": "boolean", "default": True}


def test_the_documentation_page_loosens_one_directive_only(client: Client) -> None:
    strict = directives(client.get("/health"))
    assert strict["default-src"] == "'none'"
    assert strict["script-src"] == strict["style-src"] == strict["img-src"] == "'self'"
    page = client.get("/api/docs")
    loose = directives(page)
    assert {name for name in loose if loose[name] != strict[name]} == {"img-src"}
    assert loose["img-src"] == "'self' data:"
    assert b"<style" not in page.content
    assert b"https://" not in page.content


def test_the_root_leads_to_the_admin_site(client: Client) -> None:
    response = client.get("/")
    assert response.status_code == 302
    assert response["Location"] == "/admin/"


def test_alive_says_no_more(client: Client) -> None:
    response = client.get("/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("down", [None, "default", "index"])
def test_ready_names_the_database_that_is_not_and_no_reason(
    client: Client, monkeypatch: pytest.MonkeyPatch, down: str | None
) -> None:
    def run(check: Database) -> None:
        if check.alias == down:
            raise ServiceUnavailable("connection to 10.0.0.5 failed")

    monkeypatch.setattr(Database, "run", run)
    response = client.get("/health/ready")
    assert response.status_code == (503 if down else 200)
    databases = {name: "unavailable" if name == down else "ok" for name in ("default", "index")}
    assert response.json() == {"status": "unavailable" if down else "ok", "databases": databases}


@pytest.mark.django_db
@pytest.mark.parametrize(("staff", "status"), [(True, 200), (False, 403)])
def test_metrics_are_for_staff(client: Client, staff: bool, status: int) -> None:
    client.force_login(User.objects.create_user("someone", is_staff=staff))
    assert client.get("/metrics").status_code == status


def test_metrics_are_not_for_everybody(client: Client) -> None:
    assert client.get("/metrics").status_code == 401


@pytest.mark.django_db
def test_guessing_passwords_locks_the_address_out(client: Client) -> None:
    User.objects.create_superuser("root", password="right")
    form = {"username": "root", "password": "wrong"}
    statuses = [client.post("/admin/login/", form).status_code for _ in range(6)]
    assert statuses == [200, 200, 200, 200, 429, 429]
    assert client.post("/admin/login/", {**form, "password": "right"}).status_code == 429
