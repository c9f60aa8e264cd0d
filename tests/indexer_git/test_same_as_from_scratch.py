"""After every operation of a scripted history, the index is the one that a first run makes."""

import random
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from indexer import records, store
from indexer.embed import Vectors
from indexer.git_index import GitRun
from indexer.git_source import git_source
from tests.indexer_git.conftest import NAME, Indexed
from tests.indexer_git.embedders import Hashed
from tests.indexer_git.history import History
from tests.postgres import TestIndex


@pytest.fixture
def cheap_normaliser(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same rows are made hundreds of times."""
    monkeypatch.setattr(records, "normalise", cache(records.normalise))
    return


def run_only(index: TestIndex, path: Path, backend: Hashed) -> None:
    """Index without the care of the lexical indexes that ends a command: it would take minutes."""
    with store.Writer(
        index.owner_url, embedding_model=backend.model, dimensions=backend.dimensions, source="x"
    ) as writer:
        run = GitRun(
            writer,
            git_source(path, repo=NAME),
            Vectors(writer.connection, backend),
            lambda *_: None,
        )
        run.run()


def test_incremental_equals_from_scratch_after_each_of_200_operations(
    tmp_path: Path, make_index: Callable[[], TestIndex], cheap_normaliser: None
) -> None:
    history = History(tmp_path / "history", random.Random(20_240_601))
    grown, backend = Indexed(make_index()), Hashed()
    scratch = Indexed(make_index())
    done: dict[str, int] = {}
    indexed_tip, expected = "", scratch.rows()
    for step in range(200):
        operation = history.step()
        done[operation] = done.get(operation, 0) + 1
        run_only(grown.index, history.path, backend)
        tip = history.branches["main"][-1][0]
        if tip != indexed_tip:  # an operation on the other branch changes nothing
            store.clear(scratch.index.owner_url, unless_source="")
            run_only(scratch.index, history.path, Hashed())
            expected, indexed_tip = scratch.rows(), tip
        assert grown.rows() == expected, (step, operation)
        files = history.branches["main"][-1][1]
        assert set(grown.docs()) == {path for path in files if path.endswith((".md", ".rst"))}
    assert len(done) == 6
    assert min(done.values()) >= 4
    # A whole command on top: the index can be searched, and still is the same.
    grown.run(history.path)
    assert grown.rows() == scratch.rows()


def test_patches_are_those_that_git_shows_for_each_file(tmp_path: Path, indexed: Indexed) -> None:
    """Git is asked file by file here: nothing has to be told apart."""
    history = History(tmp_path / "history", random.Random(7))
    for _ in range(60):
        history.step()
    indexed.run(history.path, embed=False)
    found = indexed.index.execute(
        "SELECT commit_sha, file_path, content FROM search_docs"
        " WHERE type = 'diff' AND file_status <> 'renamed' ORDER BY vector_id"
    )
    checked = 0
    for commit, path, content in found:
        arguments = ["diff-tree", "-p", "--root", "--no-commit-id", commit, "--", path]
        shown = subprocess.run(
            ["git", "-C", str(history.path), "--literal-pathspecs", *arguments],
            capture_output=True,
            check=True,
        ).stdout.decode()
        if shown:  # nothing for merges
            checked += 1
            assert content.endswith(f"\n\n{path}\n\n{shown[shown.index('@@') :]}")
    assert checked > 40
