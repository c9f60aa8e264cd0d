"""What a repository holds runs nothing and leads nowhere, and the repository is not changed."""

import subprocess
from pathlib import Path

import pytest

from indexer.errors import BadSource
from tests.indexer_git.conftest import Indexed
from tests.indexer_git.repository import GitRepository


def test_links_and_submodules_are_not_followed(
    repo: GitRepository, indexed: Indexed, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("outside the tree\n")
    for name, target in {
        "outside.md": "../secret.md",
        "absolute.md": str(secret),
        "loop.md": "loop.md",
        "README": ".",
    }.items():
        (repo.path / name).symlink_to(target)
    commit = repo.commit("links", a_md="neighbour\n")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit},vendored.md")
    repo.git("commit", "--quiet", "-m", "submodule")
    report = indexed.run(repo.path)
    assert indexed.docs() == {"a.md": "a.md\n\nneighbour\n"}
    # A link's content is where it leads.
    assert indexed.diffs(commit)["outside.md"].endswith(
        "@@ -0,0 +1 @@\n+../secret.md\n\\ No newline at end of file\n"
    )
    assert "outside the tree" not in " ".join(indexed.diffs().values())
    assert report.repairs.counts == {
        "submodule skipped": 1,
        "symbolic link skipped as a document": 4,
    }


def test_git_agrees_with_itself_on_what_is_binary(repo: GitRepository, indexed: Indexed) -> None:
    """Attributes of the work tree, which a bare clone does not have, change no row."""
    repo.write(".gitattributes", "*.md binary\n*.txt -diff\n*.py diff=evil\n")
    repo.git("config", "diff.evil.textconv", "echo converted")
    repo.git("config", "diff.evil.command", "echo external")
    repo.git("config", "diff.suppressBlankEmpty", "true")
    repo.git("config", "diff.noprefix", "true")
    repo.git("config", "diff.renames", "false")
    repo.commit("add", a_md="one\n\ntwo\n", b_txt="b\n", c_py="c\n")
    commit = repo.commit("edit", a_md="one\n\n2\n", b_txt="B\n", c_py="C\n")
    indexed.run(repo.path)
    assert indexed.diffs(commit) == {
        "a.md": "edit\n\na.md\n\n@@ -1,3 +1,3 @@\n one\n \n-two\n+2\n",
        "b.txt": "edit\n\nb.txt\n\n@@ -1 +1 @@\n-b\n+B\n",
        "c.py": "edit\n\nc.py\n\n@@ -1 +1 @@\n-c\n+C\n",
    }


def test_configuration_of_the_repository_runs_nothing(
    repo: GitRepository, indexed: Indexed, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    run = f"touch {mark}; cat"
    for key in (
        *("core.fsmonitor", "core.pager", "pager.rev-list", "pager.diff-tree", "core.sshCommand"),
        *("diff.external", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process"),
        *("merge.evil.driver", "core.gitProxy", "core.askPass", "alias.rev-list"),
    ):
        repo.git("config", key, run)
    repo.commit("add", a_md="text\n")
    repo.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
        script = repo.path / ".git" / "hooks" / hook
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\ntouch {mark}\n")
        script.chmod(0o755)
    mark.unlink(missing_ok=True)
    indexed.run(repo.path)
    assert set(indexed.docs()) == {"a.md"}
    assert not mark.exists()


def test_what_a_partial_clone_lacks_is_not_fetched(
    repo: GitRepository, indexed: Indexed, tmp_path: Path
) -> None:
    """The fetch would be a command that the repository's configuration names."""
    mark = tmp_path / "ran"
    repo.commit("add", a_md="text\n")
    blob = repo.git("rev-parse", "HEAD:a.md")
    for key, value in {
        "remote.origin.url": f"ext::sh -c 'touch {mark}'",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "protocol.ext.allow": "always",
        "core.repositoryformatversion": "1",
        "extensions.partialclone": "origin",
    }.items():
        repo.git("config", key, value)
    (repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(BadSource):
        indexed.run(repo.path)
    assert not mark.exists()


def test_the_indexing_changes_nothing_in_the_repository(
    repo: GitRepository, indexed: Indexed
) -> None:
    repo.commit("add", a_md="text\n")

    def state() -> str:
        return subprocess.run(
            ["find", str(repo.path), "-printf", "%p %T@ %s\n"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    before = state()
    indexed.run(repo.path)
    assert state() == before
