"""Each kind of item becomes the row of the contract, and odd ones are stored or named."""

import json
from typing import Any

from indexer.git_history import vector_id
from tests.fakes.github_api import GitHubApi, Reply
from tests.indexer_github.conftest import NAME, Indexed
from tests.postgres import BASE_DIR

LIST = f"/repos/{NAME}"


def test_an_issue_and_a_pull_request(indexed: Indexed, api: GitHubApi) -> None:
    api.issue(
        "題名",
        "本文",
        state="closed",
        labels=[{"name": "bug"}, {"name": "現場から"}],
        milestone={"title": "1.0"},
        assignees=[{"login": "ada"}, {"login": "bob"}],
    )
    api.issue("A change", None, pull=True)
    indexed.run()
    assert indexed.one(
        "vector_id, type, state, labels, milestone, assignees, title, content, repo, author,"
        " created_at = '2024-01-01T00:00:01Z', updated_at = created_at",
        number=1,
    ) == (
        vector_id("i", NAME, "1"),
        "issue",
        "closed",
        ["bug", "現場から"],
        "1.0",
        ["ada", "bob"],
        "題名",
        "題名\n\n本文",
        NAME,
        "",
        True,
        True,
    )
    assert indexed.one("type, content", number=2) == ("pull_request", "A change")


def test_the_ids_are_those_of_the_sample(indexed: Indexed, api: GitHubApi) -> None:
    """The reference's ids: an index that it filled goes on being filled by this command."""
    api.name = "acme/harbor"
    pull = api.issue(pull=True, number=15)
    api.comment(pull, id=2721600178)
    api.review(pull, id=2550151195)
    api.inline_comment(pull, id=2110149392)
    api.release("v0.9.0")
    indexed.run(name="acme/harbor")
    lines = (BASE_DIR / "indexer" / "sample" / "source.jsonl").read_text("utf-8").splitlines()
    sample = {json.loads(line).get("vector_id") for line in lines}
    keys = {row[0] for row in indexed.rows()}
    assert len(keys) == 5
    assert keys <= sample


def test_comments_reviews_and_releases(indexed: Indexed, api: GitHubApi) -> None:
    pull = api.issue(pull=True)
    comment = api.comment(pull, "What is said here")
    review = api.review(pull, "What is judged here", state="CHANGES_REQUESTED")
    inline = api.inline_comment(pull, "What is remarked here")
    api.release("v1", name=None)
    indexed.run()
    columns = "author, number, state, content"
    assert indexed.one(columns, comment_id=comment, type="issue_comment") == (
        "bob",
        1,
        "active",
        "bob\n\nWhat is said here",
    )
    assert indexed.one(f"{columns}, updated_at = created_at", review_id=review) == (
        "eve",
        1,
        "CHANGES_REQUESTED",
        "eve\n\nWhat is judged here",
        True,
    )
    assert indexed.one(f"{columns}, file_path, line, commit_sha", comment_id=inline) == (
        "eve",
        1,
        "active",
        "eve\n\nWhat is remarked here",
        "src/a.py",
        7,
        "c" * 40,
    )
    assert indexed.one("title, content, state", tag_name="v1") == (
        "v1",
        "v1\n\nNotes",
        "published",
    )


def test_an_issue_listed_as_a_pull_request_too_is_one_row(indexed: Indexed, api: GitHubApi) -> None:
    api.issue("seventh", number=7)
    api.issue("seventh", number=7, pull=True)
    plain = {key: value for key, value in api.issues[7].items() if key != "pull_request"}
    api.replies[f"{LIST}/issues"] = Reply(200, [plain, api.issues[7]])
    indexed.run()
    assert [row[2] for row in indexed.rows()] == ["pull_request"]


def test_bots_and_short_comments_are_left_out_and_counted(indexed: Indexed, api: GitHubApi) -> None:
    bot = {"login": "dependabot[bot]"}
    pull = api.issue("Bump x", pull=True, user=bot)
    api.comment(pull, "  LGTM, ok  ")
    api.comment(pull, "1234567890")
    api.comment(pull, "A report of many lines", user=bot)
    api.review(pull, "")
    api.review(pull, None, state="DISMISSED")
    api.review(pull, "not sent to anybody yet", state="PENDING", submitted_at=None)
    api.inline_comment(pull, "nit")
    api.release("v2", draft=True)
    report = indexed.run()
    assert {row[2] for row in indexed.rows()} == {"pull_request", "issue_comment"}
    assert indexed.noted(report) == {
        "left out: under 10 characters": 4,
        "left out: by a bot": 1,
        "left out: review that is not submitted": 1,
        "left out: draft of a release": 1,
    }
    assert "review 5 of #1" in report.notes.kinds["left out: under 10 characters"].names


def test_an_outdated_comment_has_its_original_line(indexed: Indexed, api: GitHubApi) -> None:
    pull = api.issue(pull=True)
    outdated = api.inline_comment(pull, line=None)
    on_the_file = api.inline_comment(pull, line=None, original_line=None, commit_id=None)
    report = indexed.run()
    assert indexed.one("line", comment_id=outdated) == (5,)
    assert indexed.one("line, commit_sha", comment_id=on_the_file) == (0, "")
    assert report.notes.kinds["outdated inline comment, stored with its original line"].count == 2


def test_items_without_users_bodies_and_times(indexed: Indexed, api: GitHubApi) -> None:
    issue = api.issue("Alone", None, user=None, milestone=None, assignees=None, labels=None)
    ghost = api.comment(issue, "Said by nobody that is left", user=None)
    api.issue("Late", updated_at="2024-13-45T00:00:00Z")
    report = indexed.run()
    assert indexed.one("content, assignees", number=issue, type="issue") == ("Alone", [])
    assert indexed.one("author, content", comment_id=ghost) == ("", "Said by nobody that is left")
    assert indexed.one("updated_at", number=2) == (None,)
    assert indexed.noted(report) == {
        "item without an author, stored so": 1,
        "updated_at is missing or impossible, stored without": 1,
    }


ODD: list[Any] = [
    None,
    7,
    "text",
    [],
    {},
    {"number": "7"},
    {"number": 2**40, "title": "too large", "updated_at": "2024-01-01T00:00:01Z"},
    {"number": 7, "title": 7},
    {"number": 7, "labels": "bug"},
    {"number": 7, "labels": [7]},
    {"number": 7, "milestone": "1.0"},
    {"number": True},
    {"number": -7},
]


def test_items_that_make_no_row_are_named_and_their_neighbours_are_stored(
    indexed: Indexed, api: GitHubApi
) -> None:
    api.issue("first")
    api.issue("second")
    good = list(api.issues.values())
    api.page_size = 100
    api.replies[f"{LIST}/issues"] = Reply(200, [good[0], *ODD, good[1]])
    report = indexed.run()
    assert indexed.contents("issue") == {"first\n\nBody", "second\n\nBody"}
    kinds = {kind: list(noted.names) for kind, noted in report.notes.kinds.items()}
    assert all(kind.startswith("not stored: ") for kind in kinds)
    named = [name for names in kinds.values() for name in names]
    assert len(named) == len(ODD)
    assert "number '-7'" in named


def test_text_that_the_database_refuses(indexed: Indexed, api: GitHubApi) -> None:
    issue = api.issue("nul \0 and half \ud800", "x" * 9000, labels=[{"name": "\udfff"}])
    api.comment(issue, "half a character \ud83d and more")
    api.release("v\ud800")
    report = indexed.run()
    assert len(indexed.rows()) == 3
    assert indexed.one("length(content), labels", number=1, type="issue") == (8000, ["\ufffd"])
    assert report.repairs.counts["NUL replaced"] == 2
