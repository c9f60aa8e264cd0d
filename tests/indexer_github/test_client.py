"""Limits, failures and redirects: waited for within a bound, tried again, or said clearly."""

import logging
import time
from email.utils import formatdate
from typing import Any

import pytest

from indexer.errors import IndexerError
from indexer.github_client import GitHub, LimitReached, Refused
from indexer.github_sync import github_source
from tests.fakes.github_api import GitHubApi, Received, Reply
from tests.indexer_github.conftest import NAME, Clients, Indexed, difference
from tests.indexer_github.test_incremental import Scratch, fill

SECONDARY = {"message": "You have exceeded a secondary rate limit."}
PATH = f"/repos/{NAME}"


def soon(seconds: int) -> str:
    return str(int(time.time()) + seconds)


@pytest.mark.parametrize(
    ("reply", "least", "most"),
    [
        (Reply(429, None, {"Retry-After": "7"}), 7, 7),
        (Reply(403, SECONDARY, {"Retry-After": "30"}), 30, 30),
        (
            Reply(403, {}, {"Retry-After": formatdate(time.time() + 9_000)}),
            8_000,
            9_000,
        ),
        (
            Reply(403, {}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": soon(9_000)}),
            8_900,
            9_001,
        ),
        (Reply(403, {}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}), 1, 1),
        (Reply(403, SECONDARY), 60, 60),
        (Reply(403, b"<html>abuse</html>"), 60, 60),
        (Reply(429), 60, 60),
        (Reply(503, None, {"Retry-After": "0"}), 1, 1),
        (Reply(503, None, {"Retry-After": "nonsense"}), 60, 60),
    ],
)
def test_a_limit_is_waited_for(
    clients: Clients, api: GitHubApi, reply: Reply, least: float, most: float
) -> None:
    api.refusals.append(reply)
    with clients.client(max_wait=10_000) as github:
        assert github.get(PATH).body["full_name"] == NAME
    ((seconds, _),) = clients.waits
    assert least <= seconds <= most


def test_waits_without_a_header_grow_and_are_bounded(clients: Clients, api: GitHubApi) -> None:
    api.refusals += [Reply(403, SECONDARY)] * 10
    with clients.client(max_wait=500) as github, pytest.raises(LimitReached, match="--max-wait"):
        github.get(PATH)
    assert [seconds for seconds, _ in clients.waits] == [60, 120, 240]


def test_the_bound_is_over_all_waits(clients: Clients, api: GitHubApi) -> None:
    with clients.client(max_wait=10) as github:
        api.refusals.append(Reply(429, None, {"Retry-After": "6"}))
        github.get(PATH)
        api.refusals.append(Reply(429, None, {"Retry-After": "6"}))
        with pytest.raises(LimitReached):
            github.get(PATH)


def test_a_limit_in_the_middle_loses_nothing(
    indexed: Indexed, api: GitHubApi, scratch: Scratch
) -> None:
    """With no patience each run gets some requests further, and the cursors follow."""
    fill(api, gap=100)
    budget = [0]

    def count(received: Received) -> None:
        budget[0] -= 1
        if budget[0] < 0:
            api.refusals.append(Reply(429, None, {"Retry-After": "60"}))

    api.before = count
    stored = [0]
    for _ in range(30):
        budget[0] = 6
        api.refusals.clear()
        try:
            indexed.run(max_wait=0)
            break
        except LimitReached:
            stored.append(len(indexed.rows()))
    else:
        pytest.fail("it never came to an end")
    assert len(set(stored)) > 3
    assert stored == sorted(stored)
    api.before = lambda received: None
    api.refusals.clear()
    assert difference(indexed.rows(), scratch()) == []


def test_what_fails_in_passing_is_tried_again(
    indexed: Indexed, api: GitHubApi, scratch: Scratch
) -> None:
    fill(api, 6)
    turn = [0]

    def fail(received: Received) -> None:
        turn[0] += 1
        if turn[0] % 2:
            odd = [Reply(502), Reply(500, b"oops"), Reply(200, b'[{"number"'), Reply(504)]
            api.refusals.append(odd[turn[0] // 2 % 4])

    api.before = fail
    indexed.run()
    api.before = lambda received: None
    assert indexed.waits == []
    assert difference(indexed.rows(), scratch()) == []


def test_a_server_that_stays_broken_is_an_error(clients: Clients, api: GitHubApi) -> None:
    api.refusals += [Reply(502)] * 10
    with clients.client() as github, pytest.raises(IndexerError, match="status 502"):
        github.get(PATH)
    assert len(api.requests) == 5


def test_nobody_is_there() -> None:
    client = GitHub("http://127.0.0.1:9", max_wait=0, first_retry_s=0.001)
    with client as github, pytest.raises(IndexerError, match="could not be reached"):
        github.get("/repos/a/b")


def test_a_403_that_is_no_limit_is_refused_at_once(clients: Clients, api: GitHubApi) -> None:
    api.refusals.append(Reply(403, {"message": "Resource not accessible by personal access token"}))
    with clients.client() as github, pytest.raises(Refused, match="not accessible") as refused:
        github.get(PATH)
    assert refused.value.status == 403
    assert clients.waits == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_on_its_host_only(
    clients: Clients, api: GitHubApi, status: int
) -> None:
    api.replies["/old"] = Reply(status, None, {"Location": PATH})
    api.replies["/away"] = Reply(status, None, {"Location": "http://localhost:1/steal"})
    api.replies["/plain"] = Reply(status, None, {"Location": "https://127.0.0.1/steal"})
    api.replies["/round"] = Reply(status, None, {"Location": "/round"})
    api.replies["/nowhere"] = Reply(status)
    with clients.client(token="secret") as github:
        assert github.get("/old", {"page": 2}).body["id"] == api.identity
        assert api.requests[-1].query == {"page": "2"}
        for path in ("/away", "/plain"):
            with pytest.raises(Refused, match="another host"):
                github.get(path)
        for path in ("/round", "/nowhere"):
            with pytest.raises(Refused, match="redirected more than"):
                github.get(path)


def test_the_token_is_sent_and_told_to_nobody(
    clients: Clients, api: GitHubApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    api.refusals += [Reply(502), Reply(429, None, {"Retry-After": "1"})]
    with clients.client(token="ghp_secret") as github:
        github.get(PATH)
        api.refusals += [Reply(502)] * 5
        with pytest.raises(IndexerError) as error:
            github.get(PATH)
    assert {one.headers["authorization"] for one in api.requests} == {"Bearer ghp_secret"}
    assert "ghp_secret" not in caplog.text + repr(error.value) + repr(error.value.__context__)


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("api.github.com", ""),
        ("ftp://api.github.com", ""),
        ("https://", ""),
        ("https://user:password@api.github.com", ""),
        ("http://ghes.example.com/api/v3", "secret"),
        ("https://api.github.com", "two\nlines"),
        ("https://api.github.com", "日本語"),
    ],
)
def test_an_address_or_token_that_cannot_be_used(url: str, token: str) -> None:
    with pytest.raises(IndexerError) as error:
        GitHub(url, token, max_wait=0)
    assert not token or token not in str(error.value)


def test_a_path_in_the_base_is_kept(clients: Clients, api: GitHubApi) -> None:
    api.replies["/api/v3/repos/a/b"] = Reply(200, {"id": 1})
    with GitHub(f"{api.url}/api/v3/", max_wait=0) as github:
        assert github.get("/repos/a/b").body == {"id": 1}


def test_a_renamed_repository_keeps_the_name_of_its_rows(indexed: Indexed, api: GitHubApi) -> None:
    fill(api, 4)
    indexed.run()
    rows = indexed.rows()
    api.old_names, api.name = {NAME}, "acme/renamed"
    api.issue("after the rename")
    report = indexed.run()
    assert report.called == "acme/renamed"
    assert len(indexed.rows()) == len(rows) + 1
    assert {row[1] for row in indexed.rows()} == {NAME}
    again = indexed.run(name="acme/renamed")
    kind = "the same repository is indexed under another name, too"
    assert list(again.notes.kinds[kind].names) == [NAME]


def test_the_spelling_is_that_of_github(indexed: Indexed, api: GitHubApi) -> None:
    api.issue()
    assert indexed.run(name="ACME/App").repo == NAME
    assert {row[1] for row in indexed.rows()} == {NAME}


def test_another_repository_under_the_name_is_refused(indexed: Indexed, api: GitHubApi) -> None:
    api.issue("of the first")
    indexed.run()
    api.identity += 1
    api.issues[1]["title"] = "of the second"
    with pytest.raises(IndexerError, match="another repository"):
        indexed.run()
    assert indexed.contents("issue") == {"of the first\n\nBody"}
    indexed.run(full=True)
    assert indexed.contents("issue") == {"of the second\n\nBody"}


@pytest.mark.parametrize("name", ["app", "acme/../app", "acme/..", "a/b/c", "a/b?c", "a/ü", ""])
def test_a_name_that_is_none_asks_nothing(clients: Clients, api: GitHubApi, name: str) -> None:
    with clients.client() as github, pytest.raises(IndexerError, match="owner/name"):
        github_source(github, name)
    assert api.requests == []


def test_a_repository_that_is_not_there(clients: Clients) -> None:
    message = "no repository acme/none, or GITHUB_TOKEN"
    with clients.client() as github, pytest.raises(IndexerError, match=message):
        github_source(github, "acme/none")


def test_issues_are_switched_off(indexed: Indexed, api: GitHubApi) -> None:
    """Pull requests come from their own listing then, with their reviews."""
    fill(api)
    gone = Reply(410, {"message": "Issues has been disabled in this repository."})
    api.replies |= {f"{PATH}/issues": gone, f"{PATH}/issues/comments": gone}
    report = indexed.run()
    assert len(indexed.contents("pull_request")) == len(indexed.contents("pr_review")) == 6
    assert indexed.noted(report) == {"GitHub answered 410, not read": 2}
    api.edit(8, title="Changed")
    indexed.run(full=True)
    assert "Changed\n\nBody" in indexed.contents("pull_request")
    api.replies.clear()
    indexed.run()
    assert len(indexed.contents("issue")) == 6


@pytest.mark.parametrize("status", [404, 410, 451, 422])
def test_a_listing_that_is_refused_is_named_and_the_others_are_read(
    indexed: Indexed, api: GitHubApi, status: int
) -> None:
    fill(api, 4)
    indexed.run()
    for path in ("/issues/comments", "/pulls/comments", "/pulls/2/reviews", "/releases"):
        api.replies[PATH + path] = Reply(status, {"message": "no"})
    api.edit(2, title="Changed")
    rows = len(indexed.rows())
    report = indexed.run(full=True)
    assert indexed.noted(report) == {f"GitHub answered {status}, not read": 4}
    # What could not be read is not taken for gone; a pull request without reviews has none.
    assert len(indexed.rows()) == rows - 1
    assert "Changed\n\nBody" in indexed.contents("pull_request")


@pytest.mark.parametrize("body", [{}, "text", 7, None])
def test_an_answer_that_is_no_list_is_an_error(indexed: Indexed, api: GitHubApi, body: Any) -> None:
    api.replies[f"{PATH}/issues"] = Reply(200, body)
    with pytest.raises(IndexerError, match=r"list|JSON"):
        indexed.run()
