"""Reading what git prints, in whatever pieces it comes, and however it breaks off."""

import io
import random
import subprocess
from pathlib import Path
from typing import cast

import pytest

from indexer.byte_stream import MOST_BYTES, ByteStream, whole_characters
from indexer.errors import BadSource
from indexer.git_patch import PATCHES, Change, quote, read_changes
from tests.indexer_git.history import History


class Dribble(io.RawIOBase):
    """Gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data = io.BytesIO(data)
        self._chooser = random.Random(most)
        self._most = most

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, self._chooser.randint(1, self._most)))


def stream(data: bytes, most: int = 2**20) -> ByteStream:
    return ByteStream(cast(io.BufferedReader, Dribble(data, most)))


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    history = History(tmp_path_factory.mktemp("git") / "history", random.Random(2))
    for _ in range(90):  # how merges fall out varies with the clock: well above what is asked for
        history.step()
    commits = subprocess.run(
        ["git", "-C", str(history.path), "rev-list", "--topo-order", "--reverse", "main"],
        capture_output=True,
        check=True,
    )
    return subprocess.run(
        ["git", "-C", str(history.path), "-c", "core.quotePath=false", "diff-tree", *PATCHES],
        input=commits.stdout,
        capture_output=True,
        check=True,
    ).stdout


def changes(data: bytes, most: int = 2**20) -> list[Change]:
    return list(read_changes(stream(data, most), patches=True))


def test_pieces_make_no_difference(printed: bytes) -> None:
    whole = changes(printed)
    assert len(whole) > 50
    assert any(len(change.letters) > 1 and change.patch for change in whole)
    for most in (1, 2, 7, 100):
        assert changes(printed, most) == whole


def test_output_that_breaks_off_gives_no_wrong_change(printed: bytes) -> None:
    whole = changes(printed)
    chooser = random.Random(3)
    for cut in chooser.sample(range(1, len(printed)), 150):
        found: list[Change] = []
        try:
            for change in read_changes(stream(printed[:cut]), patches=True):
                found.append(change)
        except (EOFError, BadSource):
            pass
        # The last change may have lost what came after the cut, such as its second hunk, and
        # that a merge's file has no patch cannot be told from a cut; git's exit code tells.
        while found and not found[-1].patch:
            found.pop()
        assert found[:-1] == whole[: len(found[:-1])]


@pytest.mark.parametrize(
    "data",
    [
        b"not a commit\0",
        b"0" * 40 + b"\0diff --git a/x b/x\n",
        b"0" * 40 + b"\0:100644 100644 1 2 M\0x\0\0diff --git a/y b/y\n",
        b"0" * 40 + b"\0:100644 100644 1 2 M\0x\0\0diff --git a/x b/x\n@@ nonsense\n",
        b"0" * 40 + b"\0:100644 100644 1 2 M\0x\0\0diff --git a/x b/x\n@@@ -1 -1 +1 @@@\n",
    ],
)
def test_what_diff_tree_does_not_print_is_refused(data: bytes) -> None:
    with pytest.raises(BadSource):
        changes(data)


def test_paths_are_quoted_as_git_does(tmp_path: Path) -> None:
    """Git is asked to quote each byte that a name can hold."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    names = [b"a%cb" % code for code in range(1, 256) if code != ord("/")]
    entries = b"".join(
        b"100644 blob %s\t%b\0" % (b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", n) for n in names
    )
    git = ["git", "-C", str(tmp_path), "-c", "core.quotePath=false"]
    tree = subprocess.run(
        [*git, "mktree", "-z", "--missing"], input=entries, capture_output=True, check=True
    ).stdout.strip()
    shown = subprocess.run(
        [*git, "ls-tree", "--name-only", tree], capture_output=True, check=True
    ).stdout.split(b"\n")
    assert sorted(map(quote, names)) == sorted(shown[:-1])


def test_lines_tokens_and_blocks() -> None:
    source = stream(b"one\ntwo\0three" + b"x" * 50_000 + b"\nlast", most=5_000)
    assert source.peek(3) == b"one"
    assert source.line() == b"one\n"
    assert source.token() == b"two"
    assert source.take(3) == b"thr"
    assert source.line() == (b"ee" + b"x" * 50_000)[:MOST_BYTES]
    assert source.line() == b"last"
    assert source.peek(1) == b""
    for read in (source.line, source.token, lambda: source.take(1)):
        with pytest.raises(EOFError):
            read()


def test_a_line_of_just_the_most_bytes_is_whole() -> None:
    for size in range(MOST_BYTES - 2, MOST_BYTES + 3):
        source = stream(b"x" * size + b"\nnext\n", most=1_000)
        line = source.line()
        assert line == (b"x" * size + b"\n")[:MOST_BYTES]
        assert source.line() == b"next\n"


def test_a_cut_leaves_whole_characters() -> None:
    text = "aé設🎉".encode()
    for size in range(len(text) + 1):
        kept = whole_characters(text[:size])
        assert text.startswith(kept)
        assert kept.decode() == text[:size].decode(errors="ignore")
    assert whole_characters(b"caf\xe9 x") == b"caf\xe9 x"
