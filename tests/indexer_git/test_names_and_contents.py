"""Odd names and contents are stored right, or skipped and counted; no neighbour suffers."""

import pytest

from search.entities import entity_key
from tests.indexer_git.conftest import NAME, Indexed
from tests.indexer_git.repository import GitRepository

ODD_NAMES = [
    "日本語 設計#1?50%.md",
    "line\nbreak.md",
    "line\ndiff --git a/evil b/innocent.md",
    "x b/y.md",
    "a:b.md",
    "a b/b b/b.md",
    'say "hi" \\ back\tslash.md',
    "trailing space .md",
    "-dash.md",
    ":(glob)*.md",
    "café.md",
    "cafe\u0301.md",
    "\x7f\x01control.md",
    "emoji 🎉.md",
]


@pytest.mark.parametrize("bare", [False, True])
def test_the_stored_path_is_the_trees(repo: GitRepository, indexed: Indexed, bare: bool) -> None:
    for name in ODD_NAMES:
        repo.write(name, f"first of {name!r}\n")
    first = repo.commit("add")
    for name in ODD_NAMES:
        repo.write(name, f"second of {name!r}\n")
    second = repo.commit("edit")
    path = repo.clone(repo.path.with_name("bare.git"), "--bare") if bare else repo.path
    indexed.run(path)
    assert indexed.docs() == {n: f"{n}\n\nsecond of {n!r}\n" for n in ODD_NAMES}
    assert indexed.diffs(first) == {
        n: f"add\n\n{n}\n\n@@ -0,0 +1 @@\n+first of {n!r}\n" for n in ODD_NAMES
    }
    assert indexed.diffs(second) == {
        n: f"edit\n\n{n}\n\n@@ -1 +1 @@\n-first of {n!r}\n+second of {n!r}\n" for n in ODD_NAMES
    }


def test_doc_and_diffs_of_a_file_share_a_key(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit(**{"日本語_md": "one\n", "b_md": "one\n"})
    repo.commit(**{"日本語_md": "two\n"})
    indexed.run(repo.path)
    found = indexed.index.execute(
        "SELECT vector_id, repo, type, doc_path, file_path, number FROM search_docs"
    )
    keys = [
        entity_key(vector_id=i, repo=r, type=t, doc_path=d, file_path=f, number=n)
        for i, r, t, d, f, n in found
    ]
    assert sorted(keys) == 2 * [f"file:{NAME}:b.md"] + 3 * [f"file:{NAME}:日本語.md"]


def test_a_name_that_is_not_utf8_is_skipped_and_counted(
    repo: GitRepository, indexed: Indexed
) -> None:
    repo.write(b"caf\xe9.md", "latin\n")
    repo.write("caf\ufffd.md", "another file\n")
    repo.commit(a_md="neighbour\n")
    report = indexed.run(repo.path)
    assert set(indexed.docs()) == set(indexed.diffs()) == {"a.md", "caf\ufffd.md"}
    assert report.repairs.counts == {"path that is not UTF-8: file skipped": 2}


def test_a_name_too_long_for_an_index_entry_is_skipped(
    repo: GitRepository, indexed: Indexed
) -> None:
    repo.write("/".join(["d" * 200] * 12) + "/a.md", "deep\n")
    repo.commit(a_md="neighbour\n")
    report = indexed.run(repo.path)
    assert set(indexed.docs()) == {"a.md"}
    assert report.repairs.counts == {"path of more than 2,000 bytes: file skipped": 2}


CONTENTS = {
    "latin1.md": (b"caf\xe9 \xfc\n", "café ü\n"),
    "mixed.md": ("naïve\n".encode() + b"na\xefve\n", "naïve\nnaïve\n"),
    "separators.md": (
        "a\u2028b\u2029c\x0cd\x0be\x85f\n".encode(),
        "a\u2028b\u2029c\x0cd\x0be\x85f\n",
    ),
    "cr.md": (b"one\rtwo\rthree\r", "one\rtwo\rthree\r"),
    "crlf.md": (b"one\r\ntwo\r\n", "one\r\ntwo\r\n"),
    "fake.md": (
        b"diff --git a/evil b/innocent.md\n@@ -1 +1 @@\n--- a/x\n\\ No newline at end of file\n",
        "diff --git a/evil b/innocent.md\n@@ -1 +1 @@\n--- a/x\n\\ No newline at end of file\n",
    ),
    "bare.md": (b"no newline at the end", "no newline at the end"),
    "bom.md": (b"\xef\xbb\xbftext\n", "\ufefftext\n"),
    "late-nul.md": (b"x" * 9_000 + b"\n\0\n", "x" * 9_000 + "\n"),
    "blank.md": (b"\n\n\n", "\n\n\n"),
    "empty.md": (b"", ""),
}


def test_contents_are_stored_as_they_are(repo: GitRepository, indexed: Indexed) -> None:
    for name, (data, _) in CONTENTS.items():
        repo.write(name, data)
    commit = repo.commit("add")
    report = indexed.run(repo.path)
    assert indexed.docs() == {n: f"{n}\n\n{text}"[:8_000] for n, (_, text) in CONTENTS.items()}
    diffs = indexed.diffs(commit)
    assert set(diffs) == set(CONTENTS) - {"empty.md"}
    for name, (_, text) in CONTENTS.items():
        if name != "empty.md":
            whole = text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"
            added = "".join(f"+{line}\n" for line in text.removesuffix("\n").split("\n"))
            lines = added.count("\n")
            header = f"@@ -0,0 +1{f',{lines}' if lines > 1 else ''} @@\n"
            expected = f"add\n\n{name}\n\n{header}{added}"
            if whole != text:
                expected += "\\ No newline at end of file\n"
            if name == "late-nul.md":
                expected = expected.replace("@@ -0,0 +1 @@", "@@ -0,0 +1,2 @@")
            assert diffs[name] == expected[:8_000], name
    counts = report.repairs.counts
    assert counts["document read as Latin-1"] == counts["patch read as Latin-1"] == 2


def test_every_line_of_a_patch_is_read_by_the_hunks_count(
    repo: GitRepository, indexed: Indexed
) -> None:
    """Lines that look like what git prints between files, removed and added."""
    fake = "diff --git a/evil b/innocent.md\n-- a/evil\n++ b/evil\n@@ -1 +1 @@\n" + "0" * 40 + "\n"
    repo.commit(a_md=fake, z_md="neighbour\n")
    commit = repo.commit("turn", a_md="\n".join(reversed(fake.split("\n"))), z_md="changed\n")
    indexed.run(repo.path)
    diffs = indexed.diffs(commit)
    assert set(diffs) == {"a.md", "z.md"}
    assert diffs["z.md"] == "turn\n\nz.md\n\n@@ -1 +1 @@\n-neighbour\n+changed\n"
    shown = repo.git("diff-tree", "-p", "--no-commit-id", commit, "--", "a.md")
    assert diffs["a.md"].rstrip("\n").endswith(shown[shown.index("\n@@") + 1 :])


def test_long_lines_and_large_files_are_cut_at_whole_characters(
    repo: GitRepository, indexed: Indexed
) -> None:
    repo.write("long.md", "設計" * 50_000)
    repo.write("large.md", "設計\n" * 500_000)
    repo.commit("add", z_md="neighbour\n")
    report = indexed.run(repo.path)
    assert indexed.docs()["long.md"] == ("long.md\n\n" + "設計" * 5_000)[:8_000]
    head = "add\n\nlong.md\n\n@@ -0,0 +1 @@\n+"
    assert indexed.diffs()["long.md"] == (head + "設計" * 5_000)[:8_000]
    assert indexed.diffs()["large.md"].startswith(
        "add\n\nlarge.md\n\n@@ -0,0 +1,500000 @@\n+設計\n+設"
    )
    assert {len(text) for path, text in indexed.diffs().items() if path != "z.md"} == {8_000}
    assert indexed.diffs()["z.md"] == "add\n\nz.md\n\n@@ -0,0 +1 @@\n+neighbour\n"
    assert "Latin-1" not in " ".join(report.repairs.counts)


def test_what_has_no_textual_patch_has_no_diff(repo: GitRepository, indexed: Indexed) -> None:
    repo.commit("add", a_md="text\n" * 20, run_sh="#!/bin/sh\n", b_bin=b"a\0b", c_md=b"a\0b")
    (repo.path / "run.sh").chmod(0o755)
    repo.git("mv", "a.md", "moved.md")
    pure = repo.commit("move and chmod", b_bin=b"a\0c")
    empty = repo.commit("nothing")
    report = indexed.run(repo.path)
    assert indexed.diffs(pure) == indexed.diffs(empty) == {}
    assert set(indexed.diffs()) == {"a.md", "run.sh"}
    assert set(indexed.docs()) == {"moved.md"}
    assert report.repairs.counts == {
        "binary change skipped": 3,
        "change without a textual patch skipped": 2,
        "binary file skipped as a document": 1,
    }


def test_a_link_that_becomes_a_file_has_both_patches(repo: GitRepository, indexed: Indexed) -> None:
    (repo.path / "a.md").symlink_to("b.md")
    repo.commit("link")
    (repo.path / "a.md").unlink()
    commit = repo.commit("file", a_md="text\n", z_md="neighbour\n")
    indexed.run(repo.path)
    assert indexed.diffs(commit) == {
        "a.md": "file\n\na.md\n\n@@ -1 +0,0 @@\n-b.md\n\\ No newline at end of file\n"
        "@@ -0,0 +1 @@\n+text\n",
        "z.md": "file\n\nz.md\n\n@@ -0,0 +1 @@\n+neighbour\n",
    }
    (status,) = indexed.one("file_status", commit_sha=commit, file_path="a.md")
    assert status == "changed"
