"""manage.py index_github, as a person runs it."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings

from tests.fakes.github_api import GitHubApi, Reply
from tests.indexer_git.repository import GitRepository
from tests.indexer_github.conftest import NAME, Indexed


@pytest.fixture
def command(indexed: Indexed, api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("INDEX_OWNER_URL", indexed.index.owner_url)
    monkeypatch.setenv("GITHUB_API_URL", api.url)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")

    def run(*arguments: str) -> tuple[str, str]:
        out, err = io.StringIO(), io.StringIO()
        with override_settings(SEARCH_EMBEDDER="tests.indexer_git.embedders.Hashed"):
            call_command("index_github", *arguments, stdout=out, stderr=err, no_color=True)
        return out.getvalue(), err.getvalue()

    return run


def test_it_reports_what_it_did(command: Any, api: GitHubApi, tmp_path: Path) -> None:
    wiki = GitRepository(tmp_path / "wiki")
    wiki.commit(Home_md="text")
    issue = api.issue()
    for _ in range(12):
        api.comment(issue, "short")
    api.release("v\x1b[31m", draft=True)
    out, err = command(NAME, "--wiki", str(wiki.path))
    assert "2 rows new, 0 changed, 0 deleted." in out
    assert "2 texts embedded" in out
    assert "left out: under 10 characters: 12 (issue comment 2, " in out
    assert "and 2 more)" in out
    assert "\x1b" not in out
    assert err == ""
    out, _ = command(NAME, "--wiki", str(wiki.path), "-v", "2")
    assert "The index was up to date." in out
    assert {one.headers["authorization"] for one in api.requests} == {"Bearer ghp_secret"}


def test_it_waits_and_says_so(command: Any, api: GitHubApi) -> None:
    api.refusals.append(Reply(429, None, {"Retry-After": "1"}))
    _, err = command(NAME)
    assert err.startswith("Waiting 1 s, until ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no-name",), "owner/name"),
        (("acme/none",), "no repository acme/none"),
        ((NAME, "--wiki", "/no/such/folder"), "There is no folder"),
        ((NAME, "--max-wait", "soon"), "no number of seconds"),
        ((NAME, "--max-wait", "-1"), "no number of seconds"),
    ],
)
def test_what_cannot_be_done_is_said(command: Any, arguments: tuple[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        command(*arguments)


def test_it_ends_at_its_bound(command: Any, api: GitHubApi) -> None:
    api.refusals.append(Reply(429, None, {"Retry-After": "100"}))
    with pytest.raises(CommandError, match="may wait 20 s more"):
        command(NAME, "--max-wait", "20")
