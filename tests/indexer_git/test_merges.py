"""A merge has what it changed itself, as a patch against its first parent."""

from tests.indexer_git.conftest import Indexed
from tests.indexer_git.repository import GitRepository


def conflict(repo: GitRepository) -> tuple[str, str]:
    """Two branches that change one line, each with a change of its own elsewhere."""
    repo.commit("root", a_md="".join(f"{n}\n" for n in range(30)), s_md="s\n", b_bin=b"\0a")
    repo.git("checkout", "--quiet", "-b", "side")
    lines = [f"{n}\n" for n in range(30)]
    repo.commit(
        "side", a_md="".join(["side top\n", *lines[1:15], "side\n", *lines[16:]]), s_md="t\n"
    )
    repo.git("checkout", "--quiet", "main")
    repo.commit("main", a_md="".join([*lines[:15], "main\n", *lines[16:29], "main end\n"]))
    return "side", "main"


def test_a_merge_has_what_it_changed_itself(repo: GitRepository, indexed: Indexed) -> None:
    """A hand edit of a conflict and a file of its own; not what the branch brought along."""
    side, _ = conflict(repo)
    lines = [f"{n}\n" for n in range(30)]
    merged = "".join(["side top\n", *lines[1:15], "by hand\n", *lines[16:29], "main end\n"])
    repo.git("merge", "--quiet", "--no-commit", "-X", "ours", side)
    commit = repo.commit("Merge side", a_md=merged, evil_md="evil\n")
    assert len(repo.git("rev-list", "--parents", "-1", commit).split()) == 3
    indexed.run(repo.path)
    assert indexed.diffs(commit) == {
        "a.md": "Merge side\n\na.md\n\n"
        "@@ -13,7 +13,7 @@\n 12\n 13\n 14\n-main\n+by hand\n 16\n 17\n 18\n",
        "evil.md": "Merge side\n\nevil.md\n\n@@ -1,0 +1,1 @@\n+evil\n",
    }
    assert indexed.docs()["a.md"] == f"a.md\n\n{merged}"


def test_a_clean_merge_has_no_row(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("root", a_md="a\n", b_md="b\n")
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit("side", a_md="A\n")
    repo.git("checkout", "--quiet", "main")
    repo.commit("main", b_md="B\n")
    repo.git("merge", "--quiet", "-m", "merge", "side")
    report = indexed.run(repo.path)
    assert indexed.diffs(repo.head()) == {}
    assert set(indexed.docs()) == {"a.md", "b.md"}
    assert report.repairs.counts == {}


def test_a_merge_of_three(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("root", a_md="a\n")
    for name in ("one", "two"):
        repo.git("checkout", "--quiet", "-b", name, "main")
        repo.commit(name, **{f"{name}_md": f"{name}\n"})
    repo.git("checkout", "--quiet", "main")
    repo.commit("main", m_md="m\n")
    repo.git("merge", "--quiet", "-m", "octopus", "one", "two")
    merge = repo.commit("octopus", "--amend", a_md="by hand\n")
    indexed.run(repo.path)
    assert indexed.diffs(merge) == {"a.md": "octopus\n\na.md\n\n@@ -1,1 +1,1 @@\n-a\n+by hand\n"}


def test_lost_lines_at_the_end_of_a_merges_hunk(repo: GitRepository, indexed: Indexed) -> None:
    """The last lines of a file, gone in the result: they come after all lines that count."""
    repo.commit("root", a_md="1\n2\n3\n4\n", z_md="z\n")
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit("side", a_md="1\n2\n3\n4\nside\n", z_md="y\n")
    repo.git("checkout", "--quiet", "main")
    repo.commit("main", a_md="1\n2\n3\n4\nmain\n", z_md="x\n")
    repo.git("merge", "--quiet", "--no-commit", "-X", "ours", "side")
    commit = repo.commit("merge", a_md="1\n2\n3\n", z_md="w\n")
    indexed.run(repo.path)
    assert indexed.diffs(commit) == {
        "a.md": "merge\n\na.md\n\n@@ -1,5 +1,3 @@\n 1\n 2\n 3\n-4\n-main\n",
        "z.md": "merge\n\nz.md\n\n@@ -1,1 +1,1 @@\n-x\n+w\n",
    }


def test_a_deletion_by_a_merge_itself(repo: GitRepository, indexed: Indexed) -> None:
    side, _ = conflict(repo)
    repo.git("merge", "--quiet", "--no-commit", "-X", "ours", side)
    repo.git("rm", "--quiet", "--force", "s.md")
    commit = repo.commit("merge")
    indexed.run(repo.path)
    assert indexed.diffs(commit)["s.md"] == "merge\n\ns.md\n\n@@ -1,1 +1,0 @@\n-s\n"
    assert indexed.one("file_status", commit_sha=commit, file_path="s.md") == ("removed",)
