"""What commits become rows, and what the rows say of them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from indexer.errors import BadSource
from indexer.git import Repository
from indexer.git_source import git_source
from tests.indexer_git.conftest import NAME, Indexed
from tests.indexer_git.repository import AUTHOR, START, GitRepository

HEADER = b"tree %tree\nparent %parent\n"


def test_a_diff_row_follows_the_contract(repo: GitRepository, indexed: Indexed) -> None:
    root = repo.commit("Subject\n\nBody line.\n", a_md="one\n", b_py="x\n")
    repo.commit("edit", a_md="two\n")
    indexed.run(repo.path)
    row = indexed.one(
        "vector_id, repo, type, state, number, doc_path, commit_sha, file_path, file_status, "
        "commit_author, author, title, title_fts, content, labels",
        commit_sha=root,
        file_path="a.md",
    )
    assert row[0].startswith("c:")
    assert len(row[0]) == 2 + 43
    assert row[1:] == (
        *(NAME, "diff", "active", 0, "", root, "a.md", "added", AUTHOR, "", f"{root[:7]} a.md"),
        row[12],
        "Subject\n\nBody line.\n\na.md\n\n@@ -0,0 +1 @@\n+one\n",
        [],
    )
    assert "a.md" in row[12].replace("\ua78f2e\ua78f", ".")
    times = indexed.one("commit_date, created_at, updated_at", commit_sha=root, file_path="b.py")
    assert len(set(times)) == 1
    # The author's clock, in a zone nine hours ahead.
    assert times[0].timestamp() == int(repo.git("show", "-s", "--format=%at", root))


def test_ids_are_those_of_the_reference(repo: GitRepository, indexed: Indexed) -> None:
    from indexer.git_docs import doc_id
    from indexer.git_history import diff_id

    name = "Liplus-Project/liplus-language"
    assert doc_id(name, "Li+config.md") == "d:7TbhrwUB9umIBSQuZHJENv0h772kH3OFhZEoVXWaH44"
    sha = "c1504a981385fc29e64c3577f9247e7e26d2f860"
    path = "docs/Decision-Structure.md"
    assert diff_id(name, sha, path) == "c:tk8GSN6-xwaaWivD6_SUZUlqkta9bZZfSQcTcTCGVis"


def test_statuses(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("add", a_md="text\n" * 9, b_md="b\n")
    repo.git("mv", "a.md", "moved.md")
    (repo.path / "b.md").unlink()
    commit = repo.commit("work", moved_md="text\n" * 9 + "more\n", c_md="c\n")
    indexed.run(repo.path)
    found = indexed.index.execute(
        "SELECT file_path, file_status FROM search_docs WHERE commit_sha = %s", commit
    )
    assert dict(found) == {"moved.md": "renamed", "b.md": "removed", "c.md": "added"}
    assert indexed.diffs(commit)["moved.md"].endswith(
        "@@ -7,3 +7,4 @@ text\n text\n text\n text\n+more\n"
    )


def test_a_rename_keeps_the_old_rows_under_the_old_path(
    repo: GitRepository, indexed: Indexed
) -> None:
    first = repo.commit("add", a_md="text\n")
    indexed.run(repo.path)
    repo.git("mv", "a.md", "moved.md")
    repo.commit("rename")
    indexed.run(repo.path)
    assert set(indexed.docs()) == {"moved.md"}
    assert set(indexed.diffs(first)) == {"a.md"}


# The author's line → seconds from 1970.
DATES: dict[bytes, int | None] = {
    b"A <a@b> 1700000000 +0900": 1_700_000_000,
    b"A <a@b> 1700000001 +9999": 1_700_000_001,
    b"A <a@b> 1700000002 -7:30": 1_700_000_002,
    b"A <a@b> 1700000003": 1_700_000_003,
    b"A <a@b> 0 +0000": 0,
    b"A <a@b> -86400 +0000": -86_400,
    b"A <a@b> 4102444800 +0000": 4_102_444_800,
    b"A <a@b> 99999999999999 +0000": None,
    b"A <a@b> 9999999999999999999 +0000": None,
    b"A <a@b> 99999999999999999999999999 +0000": None,
    b"A <a@b> -99999999999999 +0000": None,
    b"A <a@b> tomorrow +0000": None,
    b"A <a@b>": None,
    b"A <": None,
    b"A": None,
}


def test_impossible_dates(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("root", root_md="one\n")
    commits = {}
    for n, author in enumerate(DATES):
        repo.write(f"{n}.md", "two\n")
        repo.git("add", "--all")
        commits[n] = repo.raw_commit(
            HEADER + b"author " + author + b"\ncommitter C <c@d> 1800000000 +0000\n\nodd\n"
        )
    last = repo.commit("last", last_md="three\n")
    report = indexed.run(repo.path)
    for n, seconds in enumerate(DATES.values()):
        date = None if seconds is None else datetime.fromtimestamp(0, UTC) + timedelta(0, seconds)
        stored = indexed.one("commit_date, updated_at, commit_author", commit_sha=commits[n])
        assert stored == (date, date, "A" if n != 13 else stored[2])
        assert indexed.one("updated_at", doc_path=f"{n}.md") == (date,)
    missing = sum(seconds is None for seconds in DATES.values())
    assert report.repairs.counts == {"commit without a possible date": missing}
    assert set(indexed.diffs(last)) == {"last.md"}


def test_a_commit_without_an_author(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("root", root_md="one\n")
    for n, author in enumerate([b"", b"author \n", b"author <>\n", b"author A <a@b 17\n"]):
        repo.write(f"{n}.md", "two\n")
        repo.git("add", "--all")
        repo.raw_commit(HEADER + author + b"committer C <c@d> 1800000000 +0000\n\nodd\n")
    indexed.run(repo.path)
    for n in range(4):
        expected = (None, f"odd\n\n{n}.md\n\n@@ -0,0 +1 @@\n+two\n")
        assert indexed.one("commit_date, content", file_path=f"{n}.md") == expected


# (line of the header, message, stored text)
MESSAGES = [
    (b"", "設計".encode(), "設計"),
    (b"", b"caf\xe9", "café"),
    (b"encoding ISO-8859-1\n", b"caf\xe9", "café"),
    (b"encoding EUC-JP\n", "設計".encode("euc-jp"), "設計"),
    (b"encoding no-such\n", "設計".encode(), "設計"),
    (b"encoding zip\n", b"plain", "plain"),
    (b"encoding ascii\n", "設計".encode(), "設計"),
    (b"", b"nul \0 inside", "nul \ufffd inside"),
    (b"", b"\n\n", ""),
]


def test_messages(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("root", root_md="one\n")
    for n, (encoding, message, _) in enumerate(MESSAGES):
        repo.write(f"{n}.md", "two\n")
        repo.git("add", "--all")
        people = b"author A <a@b> 17 +0000\ncommitter A <a@b> 17 +0000\n"
        repo.raw_commit(HEADER + people + encoding + b"\n" + message)
    indexed.run(repo.path)
    for n, (_, _, text) in enumerate(MESSAGES):
        expected = "\n\n".join(filter(None, (text, f"{n}.md", "@@ -0,0 +1 @@\n+two\n")))
        assert indexed.diffs()[f"{n}.md"] == expected


def test_a_signature_is_no_part_of_the_message(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("root", a_md="one\n")
    repo.write("b.md", "two\n")
    repo.git("add", "b.md")
    commit = repo.raw_commit(
        HEADER + b"author A <a@b> 17 +0000\ncommitter A <a@b> 17 +0000\n"
        b"gpgsig -----BEGIN-----\n \n author E <e@e> 99 +0000\n -----END-----\n\nsigned\n"
    )
    indexed.run(repo.path)
    assert indexed.diffs(commit)["b.md"].startswith("signed\n\nb.md")
    assert indexed.one("commit_author", commit_sha=commit) == ("A",)


def test_a_document_has_the_date_of_its_newest_commit(
    repo: GitRepository, indexed: Indexed
) -> None:
    repo.commit("add", a_md="one\n", b_md="one\n")
    edit = repo.commit("edit", a_md="two\n")
    repo.commit("other", c_py="x\n")
    indexed.run(repo.path)
    (date,) = indexed.one("updated_at", doc_path="a.md")
    assert date.timestamp() == int(repo.git("show", "-s", "--format=%at", edit))
    assert date.timestamp() > indexed.one("updated_at", doc_path="b.md")[0].timestamp() > START


def test_a_row_of_the_tree_only(repo: GitRepository, indexed: Indexed) -> None:
    """Documents are Markdown, reStructuredText, AsciiDoc and plain README, of the branch."""
    names = ["a.md", "A.MD", "b.rst", "c.adoc", "README", "readme.txt", "d/README", "e.markdown"]
    for name in [*names, "x.txt", "README.py", "md", "notes.md.bak"]:
        repo.write(name, "text\n")
    repo.commit()
    repo.git("checkout", "--quiet", "-b", "other")
    repo.commit(other_md="text\n")
    indexed.run(repo.path, branch="main")
    assert set(indexed.docs()) == set(names)


def test_patterns_are_a_setting(
    repo: GitRepository, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit(a_md="text\n", b_txt="text\n")
    indexed.run(repo.path)
    monkeypatch.setenv("INDEX_DOC_PATTERNS", "*.txt")
    indexed.run(repo.path)
    assert set(indexed.docs()) == {"b.txt"}


def test_limits(repo: GitRepository, indexed: Indexed) -> None:
    commits = [repo.commit(str(n), **{f"a{n}_md": "text\n"}) for n in range(6)]
    indexed.run(repo.path, max_commits=2)
    assert set(indexed.diffs()) == {"a4.md", "a5.md"}
    assert len(indexed.docs()) == 6
    date = int(repo.git("show", "-s", "--format=%ct", commits[3]))
    indexed.run(repo.path, since=datetime.fromtimestamp(date, UTC))
    assert set(indexed.diffs()) == {"a3.md", "a4.md", "a5.md"}
    indexed.run(repo.path)
    assert len(indexed.diffs()) == 6
    repo.commit("new", a6_md="text\n")
    indexed.run(repo.path, max_commits=1)
    assert len(indexed.diffs()) == 7


def test_a_shallow_clone(repo: GitRepository, indexed: Indexed) -> None:
    """The commit at which it was cut would look as if it had added everything."""
    for n in range(4):
        repo.commit(str(n), **{f"a{n}_md": "text\n"})
    path = repo.clone(repo.path.with_name("shallow"), "--depth=2")
    report = indexed.run(path)
    assert set(indexed.diffs()) == {"a3.md"}
    assert len(indexed.docs()) == 4
    assert indexed.one("updated_at", doc_path="a0.md") == (None,)
    assert report.repairs.counts == {"commit without its parents (shallow clone) skipped": 1}
    repo.git("-C", str(path), "-c", "protocol.file.allow=always", "fetch", "--quiet", "--unshallow")
    indexed.run(path)
    assert len(indexed.diffs()) == 4
    assert indexed.one("updated_at", doc_path="a0.md") != (None,)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/acme/app.git", "acme/app"),
        ("https://user:token@github.com/acme/app", "acme/app"),
        ("git@github.com:acme/my.app.git", "acme/my.app"),
        ("ssh://git@github.com:22/acme/app", "acme/app"),
        ("https://gitlab.com/acme/app.git", "local/app"),
        ("https://github.com.evil.org/acme/app", "local/app"),
        ("/srv/git/app.git", "local/app"),
        (None, "local/app"),
    ],
)
def test_the_name_of_the_repository(repo: GitRepository, url: str | None, name: str) -> None:
    repo.commit()
    if url:
        repo.git("config", "remote.origin.url", url)
    assert git_source(repo.path).repo == name
    assert git_source(repo.path, repo="other/name").repo == "other/name"


def test_a_branch_that_is_only_on_the_remote(repo: GitRepository) -> None:
    repo.commit()
    repo.git("branch", "feature/x")
    path = repo.clone(repo.path.with_name("clone"))
    assert git_source(path, branch="feature/x").tip == repo.head()
    assert git_source(path).branch == "main"


@pytest.mark.parametrize("bad", ["a", "/b", "a/b/c", "a b/c", "a/b\n"])
def test_a_bad_name_is_refused(repo: GitRepository, bad: str) -> None:
    repo.commit()
    with pytest.raises(BadSource, match="owner/name"):
        git_source(repo.path, repo=bad)


def test_what_is_no_repository_is_refused(repo: GitRepository, tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="no commit on a branch main"):
        git_source(repo.path)
    repo.commit()
    with pytest.raises(BadSource, match="no commit on a branch nope"):
        git_source(repo.path, branch="nope")
    with pytest.raises(BadSource, match="no folder"):
        git_source(tmp_path / "nowhere")
    inside = repo.path / "folder"
    inside.mkdir()
    for path in (tmp_path, inside):
        with pytest.raises(BadSource, match="no git repository"):
            Repository.at(path)


def test_a_damaged_repository_is_said(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("one", a_md="one\n")
    blob = repo.git("rev-parse", "HEAD:a.md")
    repo.commit("two", b_md="two\n")
    (repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(BadSource, match=blob[:7]):
        indexed.run(repo.path)
