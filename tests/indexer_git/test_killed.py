"""`kill -9` at any point, then the command again: the index of an undisturbed run."""

import gzip
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indexer.embed import embed_missing
from tests.indexer_git.conftest import NAME, Indexed
from tests.indexer_git.embedders import Slow
from tests.indexer_git.forks import Forks, kill
from tests.indexer_git.history import History
from tests.postgres import TestIndex

KILLS = 10


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    made = History(tmp_path_factory.mktemp("git") / "history", random.Random(11))
    while len(made.branches["main"]) < 120:
        made.step()
    return made


@pytest.fixture
def forks(indexed: Indexed) -> Iterator[Forks]:
    with Forks(
        INDEX_OWNER_URL=indexed.index.owner_url,
        SEARCH_EMBEDDER="tests.indexer_git.embedders.Slow",
    ) as made:
        yield made


def timed(work: Callable[[], object]) -> float:
    """Do the work of an undisturbed run and return the seconds it took."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def kill_again_and_again(forks: Forks, seed: int, seconds: float, *command: str) -> None:
    """Start a command that takes so long and kill it at a random point, ten times."""
    chooser = random.Random(seed)
    killed = 0
    for _ in range(KILLS):
        process = forks.start(*command)
        time.sleep(seconds * chooser.uniform(0.02, 0.6))
        kill(process)
        killed += forks.ended() < 0
    assert killed > 1


def assert_searchable(indexed: Indexed) -> None:
    """The last run ended as every command ends: with a probe after the last write."""
    ((probe, later),) = indexed.index.execute(
        "SELECT lexical_probe, (lexical_probe->>'at')::timestamptz > written_at FROM index_info"
    )
    assert probe is None or (probe["passed"] and later)
    assert indexed.index.execute("SELECT FROM indexer_state WHERE key = 'writing'") == []


def test_index_git(
    forks: Forks, indexed: Indexed, history: History, make_index: Callable[[], TestIndex]
) -> None:
    command = ("index_git", str(history.path), "--repo", NAME)
    undisturbed = Indexed(make_index())
    seconds = timed(lambda: undisturbed.run(history.path, backend=Slow()))
    kill_again_and_again(forks, 1, seconds, *command)
    forks.run(*command)
    assert indexed.rows() == undisturbed.rows()
    assert_searchable(indexed)


def test_index_git_killed_between_commits_and_force_pushes(
    forks: Forks, indexed: Indexed, tmp_path: Path, make_index: Callable[[], TestIndex]
) -> None:
    """The branch moves on, or back, while no run comes to its end."""
    grown = History(tmp_path / "history", random.Random(5))
    command = ("index_git", str(grown.path), "--repo", NAME)
    chooser = random.Random(3)
    for _ in range(KILLS):
        for _ in range(6):
            grown.step()
        process = forks.start(*command)
        time.sleep(chooser.uniform(0.02, 0.3))
        kill(process)
        forks.ended()
    forks.run(*command)
    undisturbed = Indexed(make_index())
    undisturbed.run(grown.path)
    assert indexed.rows() == undisturbed.rows()
    assert_searchable(indexed)


def test_index_embed(
    forks: Forks, indexed: Indexed, history: History, make_index: Callable[[], TestIndex]
) -> None:
    undisturbed = Indexed(make_index())
    for empty in (undisturbed, indexed):
        empty.run(history.path, embed=False)
    seconds = timed(lambda: embed_missing(undisturbed.index.owner_url, Slow()))
    kill_again_and_again(forks, 2, seconds, "index_embed", "--missing")
    forks.run("index_embed", "--missing")
    assert indexed.rows() == undisturbed.rows()
    assert_searchable(indexed)


def test_index_dump(forks: Forks, indexed: Indexed, history: History, tmp_path: Path) -> None:
    indexed.run(history.path)
    target = tmp_path / "dump.jsonl.gz"
    forks.run("index_dump", str(target))
    whole = target.read_bytes()
    seconds = timed(lambda: forks.run("index_dump", str(target)))
    for seed in range(KILLS):
        process = forks.start("index_dump", str(target))
        time.sleep(seconds * random.Random(seed).random())
        kill(process)
        forks.ended()
        # The file is the old one or the new one, never a part.
        assert target.read_bytes() == whole
    assert gzip.decompress(whole).count(b"\n") == len(indexed.rows()) + 1
