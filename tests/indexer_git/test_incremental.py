"""A second run does only what is new, and the index is the one that a first run would make."""

from typing import Any

import pytest

from indexer import store
from indexer.errors import Incompatible, IndexerError
from tests.indexer_git.conftest import NAME, Indexed
from tests.indexer_git.embedders import Failing, Hashed, OtherModel
from tests.indexer_git.repository import GitRepository
from tests.postgres import row


def everything(indexed: Indexed) -> list[Any]:
    """All rows with the places where they lie, what the index says of itself, and the state."""
    index = indexed.index
    return [
        index.execute("SELECT ctid, xmin, indexed_at, vector_id FROM search_docs ORDER BY 1"),
        index.execute("SELECT * FROM index_info"),
        index.execute("SELECT key, value, written_at FROM indexer_state ORDER BY key"),
    ]


def test_nothing_changes_when_nothing_changed(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("one", a_md="one\n", b_bin=b"\0")
    repo.commit("two", a_md="two\n")
    indexed.run(repo.path)
    before, asked = everything(indexed), len(indexed.backend.texts)
    report = indexed.run(repo.path)
    assert everything(indexed) == before
    assert len(indexed.backend.texts) == asked
    assert (report.commits, report.documents, report.probe) == (0, 0, None)
    indexed.run(repo.clone(repo.path.with_name("bare"), "--mirror"), branch="main")
    assert everything(indexed) == before


def test_commits_without_rows_leave_the_rows_alone(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("one", a_md="one\n")
    indexed.run(repo.path)
    before = everything(indexed)
    repo.commit("empty")
    repo.commit("binary", b_bin=b"\0")
    report = indexed.run(repo.path)
    assert everything(indexed)[:2] == before[:2]
    assert (report.commits, report.probe) == (2, None)
    assert indexed.run(repo.path).commits == 0


def test_only_what_is_new_is_read(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("one", a_md="one\n", b_md="b\n")
    indexed.run(repo.path)
    before = set(indexed.rows())
    (repo.path / "b.md").unlink()
    repo.commit("two", a_md="two\n")
    indexed.backend.texts.clear()
    report = indexed.run(repo.path)
    assert report.commits == 1
    assert len(indexed.backend.texts) == 3  # two diffs and a document
    tally = report.tally
    assert (tally.inserted, tally.updated, tally.deleted) == (2, 1, 1)
    assert set(indexed.docs()) == {"a.md"}
    diffs = {row for row in before if row[2] == "diff"}
    assert diffs < set(indexed.rows())
    assert report.probe is not None
    assert report.probe.passed


def test_a_force_push_takes_its_diffs_away(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("one", a_md="one\n")
    lost = repo.commit("lost", a_md="two\n", b_md="b\n")
    indexed.run(repo.path)
    repo.git("reset", "--quiet", "--hard", "HEAD~")
    kept = repo.commit("kept", c_md="c\n")
    report = indexed.run(repo.path)
    assert indexed.diffs(lost) == {}
    assert set(indexed.diffs(kept)) == {"c.md"}
    assert indexed.docs() == {"a.md": "a.md\n\none\n", "c.md": "c.md\n\nc\n"}
    assert report.commits == 1
    assert report.tally.deleted == 3


def test_a_force_push_seen_from_a_new_clone(repo: GitRepository, indexed: Indexed) -> None:
    """The clone never had the commit up to which the index was made."""
    first = repo.commit("one", a_md="one\n")
    lost = repo.commit("lost", b_md="b\n")
    indexed.run(repo.path)
    repo.git("reset", "--quiet", "--hard", first)
    repo.commit("kept", c_md="c\n")
    clone = repo.clone(repo.path.with_name("clone"))
    indexed.backend.texts.clear()
    report = indexed.run(clone)
    assert indexed.diffs(lost) == {}
    assert len(indexed.diffs()) == 2
    assert (report.tally.inserted, report.tally.unchanged) == (2, 0)
    assert len(indexed.backend.texts) == 2


def test_a_rebased_commit_is_not_embedded_again(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("one", a_md="one\n")
    repo.commit("work", b_md="b\n")
    indexed.run(repo.path)
    repo.commit("work", "--amend", "--date=2001-01-01T00:00:00Z")
    indexed.backend.texts.clear()
    report = indexed.run(repo.path)
    assert (report.tally.inserted, report.tally.deleted) == (1, 1)
    assert indexed.backend.texts == []
    assert {row[-1] is None for row in indexed.rows()} == {False}


def test_branches_keep_each_others_diffs(repo: GitRepository, indexed: Indexed) -> None:
    base = repo.commit("base", a_md="one\n")
    repo.git("checkout", "--quiet", "-b", "release")
    release = repo.commit("release", r_md="r\n")
    repo.git("checkout", "--quiet", "main")
    repo.commit("main", m_md="m\n")
    indexed.run(repo.path, branch="release")
    indexed.run(repo.path, branch="main")
    assert set(indexed.diffs()) == {"a.md", "r.md", "m.md"}
    assert set(indexed.docs()) == {"a.md", "m.md"}
    # Main is moved to release and back: what release still has stays.
    repo.git("reset", "--quiet", "--hard", release)
    indexed.run(repo.path, branch="main")
    repo.git("reset", "--quiet", "--hard", base)
    indexed.run(repo.path, branch="main")
    assert set(indexed.diffs()) == {"a.md", "r.md"}
    # The documents are those of the branch indexed last, also when nothing else is new there.
    assert set(indexed.docs()) == {"a.md"}
    indexed.run(repo.path, branch="release")
    assert set(indexed.docs()) == {"a.md", "r.md"}


def test_repositories_leave_each_other_alone(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("one", a_md="one\n")
    indexed.index.load([row("x:1", repo="other/app", type="doc", doc_path="a.md", content="x")])
    indexed.run(repo.path)
    other = GitRepository(repo.path.with_name("other"))
    other.commit("one", a_md="one\n")
    indexed.run(other.path, repo="acme/other")
    found = indexed.index.execute("SELECT repo, type FROM search_docs ORDER BY 1, 2")
    both = [(name, kind) for name in (NAME, "acme/other") for kind in ("diff", "doc")]
    assert found == [*both, ("other/app", "doc")]
    (source,) = indexed.index.execute("SELECT source FROM index_info")
    assert source == (f"tests, git history: {NAME}, git history: acme/other",)


def test_another_model_is_refused_before_anything_is_written(
    repo: GitRepository, indexed: Indexed
) -> None:
    repo.commit("one", a_md="one\n")
    indexed.run(repo.path)
    before = everything(indexed)
    repo.commit("two", a_md="two\n")
    with pytest.raises(Incompatible, match="somebody/else"):
        indexed.run(repo.path, backend=OtherModel())
    assert everything(indexed) == before
    # Without embedding there is nothing to mix.
    indexed.run(repo.path, backend=OtherModel(), embed=False)
    assert indexed.index.execute("SELECT embedding_model FROM index_info") == [(Hashed.model,)]


def test_a_backend_that_fails_loses_nothing(repo: GitRepository, indexed: Indexed) -> None:
    for n in range(40):
        repo.commit(str(n), **{f"a{n}_py": f"text {n}\n"})
    Failing.left = 35
    with pytest.raises(IndexerError, match="refused the connection"):
        indexed.run(repo.path, backend=Failing())
    assert len(indexed.rows()) == 32
    ((probe,),) = indexed.index.execute("SELECT lexical_probe->'passed' FROM index_info")
    assert probe is True
    indexed.run(repo.path)
    assert len(indexed.rows()) == 40
    assert len(indexed.backend.texts) == 8


def test_only_one_command_writes(
    repo: GitRepository, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit("one", a_md="one\n")
    monkeypatch.setattr(store, "_WAIT_FOR_TURN", "50ms")
    with (
        indexed.index.writer(),
        pytest.raises(IndexerError, match="Another command is writing"),
    ):
        indexed.run(repo.path)
