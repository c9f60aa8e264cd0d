"""The bundled sample, the real model, real HTTP: what a newcomer sees after `make demo`."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from django.contrib.auth import get_user_model
from knox.models import get_token_model
from pytest_django.live_server_helper import LiveServer

from indexer.load import load_snapshot
from tests.postgres import TestIndex

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def sample(make_index: Callable[[], TestIndex], sample_path: Any) -> TestIndex:
    index = make_index()
    load_snapshot(sample_path, index.owner_url, on_bad_line=print)
    return index


@pytest.fixture
def index(sample: TestIndex, use_index: Callable[[TestIndex], TestIndex]) -> TestIndex:
    return use_index(sample)


@pytest.fixture
def ask(index: TestIndex, live_server: LiveServer) -> Iterator[Ask]:
    """Search over HTTP with a token; returns the JSON of a 200."""
    user = get_user_model().objects.create_user("reader")
    _, token = get_token_model().objects.create(user)
    headers = {"Authorization": f"Token {token}"}
    with httpx2.Client(base_url=live_server.url, headers=headers, timeout=60) as client:

        def get(query: str, **parameters: Any) -> dict[str, Any]:
            response = client.get("/api/search", params={"query": query, **parameters})
            assert response.status_code == 200, response.text
            answer: dict[str, Any] = response.json()
            return answer

        yield get


def keys(answer: dict[str, Any]) -> list[str]:
    return [result["entity_key"] for result in answer["results"]]


QUERIES = [
    "when did delegation to a subagent become mandatory",
    "subagent への委譲はいつ必須になったか",
    "同じ入港通知が何通も届く",
    "why did we move the retry limit from 5 to 1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_ten_results_are_ten_things(ask: Ask, query: str) -> None:
    answer = ask(query, top_k=10)
    assert len(set(keys(answer))) == answer["count"] == 10
    assert answer["complete"] is True
    assert answer["degraded"] == []


def test_the_duplicate_rate_that_the_collapse_removes(ask: Ask) -> None:
    """Before the collapse these questions fill their first ten places with at most eight things."""
    before = {query: ask(query, top_k=10)["slots"]["entities"] for query in QUERIES}
    assert all(entities <= 8 for entities in before.values()), before
    assert min(before.values()) <= 4, before


@pytest.mark.parametrize("query", QUERIES[:2])
def test_the_old_diff_that_answers_when_stays_in_front(ask: Ask, query: str) -> None:
    answer = ask(query, top_k=5)
    skill = next(
        r
        for r in answer["results"]
        if r["entity_key"].endswith("harbor:skills/task-delegation/SKILL.md")
    )
    assert skill["type"] == "diff"
    assert skill["commit_sha"].startswith("ce0407c")
    newer = [o for o in skill["same_entity"]["others"] if o["updated_at"] > skill["updated_at"]]
    assert newer
    assert skill["same_entity"]["count"] == 1 + len(skill["same_entity"]["others"])


def test_the_files_of_one_commit_keep_their_own_places(ask: Ask) -> None:
    answer = ask("why did we move the retry limit from 5 to 1", top_k=10)
    of_the_commit = [r for r in answer["results"] if r.get("commit_sha", "").startswith("6a27935")]
    assert len({r["file_path"] for r in of_the_commit}) == len(of_the_commit) >= 4


def test_a_wiki_page_and_a_document_of_one_name_are_two(ask: Ask) -> None:
    assert [r["type"] for r in ask("CONVENTIONS", top_k=2)["results"]] == ["wiki_doc", "doc"]


@pytest.mark.parametrize("top_k", [1, 3, 10])
def test_a_smaller_answer_is_the_head_of_a_larger_one(ask: Ask, top_k: int) -> None:
    largest = ask(QUERIES[0], top_k=50)["results"]
    assert ask(QUERIES[0], top_k=top_k)["results"] == largest[:top_k]


def test_a_client_that_ignores_the_added_field_sees_nothing_else(ask: Ask) -> None:
    for result in ask(QUERIES[0], top_k=10)["results"]:
        others = result.pop("same_entity", None)
        assert others is None or len(others["others"]) == others["count"] - 1 >= 1
        assert {"type", "url", "title", "score", "updated_at", "repo"} <= set(result)
