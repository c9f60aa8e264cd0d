"""`kill -9` at any point, then the command again: the index of an undisturbed run."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.github_api import GitHubApi, Received
from tests.indexer_git.forks import Forks, kill
from tests.indexer_git.repository import GitRepository
from tests.indexer_github.conftest import NAME, Indexed, difference
from tests.indexer_github.test_incremental import fill
from tests.postgres import TestIndex

KILLS = 10
LONGEST_RUN_S = 1.5


@pytest.fixture
def forks(indexed: Indexed, api: GitHubApi) -> Iterator[Forks]:
    with Forks(
        INDEX_OWNER_URL=indexed.index.owner_url,
        SEARCH_EMBEDDER="tests.indexer_git.embedders.Slow",
        GITHUB_API_URL=api.url,
    ) as made:
        yield made


class Killer:
    """Kills a command some time after one of its requests, or lets it come to its end."""

    def __init__(self, forks: Forks, api: GitHubApi, seed: int) -> None:
        self._forks = forks
        self._api = api
        self._chance = random.Random(seed)
        self._left = 0
        self._reached = threading.Event()
        api.before = self._count

    def _count(self, received: Received) -> None:
        self._left -= 1
        if self._left <= 0:
            self._reached.set()

    def kill_one(self, *command: str) -> bool:
        """Start a command and kill it; return whether it had not ended by itself."""
        self._left = self._chance.randrange(1, 14)
        self._reached.clear()
        process = self._forks.start(*command)
        self._reached.wait(LONGEST_RUN_S)
        time.sleep(self._chance.choice([0, 0.01, 0.05, 0.2]))
        kill(process)
        return self._forks.ended() < 0


def test_index_github(
    forks: Forks,
    indexed: Indexed,
    api: GitHubApi,
    tmp_path: Path,
    empty_index: Callable[[], TestIndex],
) -> None:
    fill(api, 40, gap=70)
    wiki = GitRepository(tmp_path / "app.wiki")
    wiki.commit(Home_md="See [[Other]]", Other_md="See [[Home]]")
    command = ("index_github", NAME, "--wiki", str(wiki.path))
    killer = Killer(forks, api, 1)
    killed = sum(killer.kill_one(*command) for _ in range(KILLS))
    assert killed >= KILLS // 2
    forks.run(*command)
    undisturbed = Indexed(empty_index(), api)
    undisturbed.run(wiki=wiki.path)
    assert difference(indexed.rows(), undisturbed.rows()) == []
    assert indexed.edges() == undisturbed.edges()
    assert_finished(indexed)


def test_a_full_run_while_the_repository_changes(
    forks: Forks, indexed: Indexed, api: GitHubApi, empty_index: Callable[[], TestIndex]
) -> None:
    """Killed again and again, it is gone on with, also by a run that is not full."""
    fill(api, 20, gap=70)
    indexed.run()
    killer = Killer(forks, api, 2)
    for number in range(1, 6):
        api.delete_issue(2 * number)
        api.issues[2 * number + 5]["labels"] = [{"name": "renamed"}]
        killer.kill_one("index_github", NAME, "--full")
        api.comment(api.issue(f"new {number}"))
        killer.kill_one("index_github", NAME)
    forks.run("index_github", NAME)
    forks.run("index_github", NAME, "--full")
    undisturbed = Indexed(empty_index(), api)
    undisturbed.run()
    assert difference(indexed.rows(), undisturbed.rows()) == []
    assert_finished(indexed)


def assert_finished(indexed: Indexed) -> None:
    """The last run ended as every command ends: with a probe after the last write."""
    ((probe, later),) = indexed.index.execute(
        "SELECT lexical_probe, (lexical_probe->>'at')::timestamptz > written_at FROM index_info"
    )
    assert probe is None or (probe["passed"] and later)
    assert indexed.index.execute("SELECT FROM indexer_state WHERE key = 'writing'") == []
    assert indexed.index.execute("SELECT FROM indexer_state WHERE key LIKE 'github-seen%'") == []
