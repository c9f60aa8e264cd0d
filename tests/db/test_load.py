"""Loading a snapshot: what is stored, repaired and refused, and going on after a kill."""

import base64
import gzip
import json
import os
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings

from indexer import load, store
from search.normalise import NORMALISER_VERSION
from search.services import search
from search.types import ROW_TYPES, SearchRequest
from tests.postgres import DIMENSIONS, MODEL, TestIndex, url_of

HEADER = {
    "kind": "header", "format": "rag-index-snapshot", "version": 1, "embedding_model": MODEL,
    "dimensions": DIMENSIONS, "source": "a test",
}  # fmt: skip


def vector(*numbers: float, dimensions: int = DIMENSIONS) -> str:
    padded = np.zeros(dimensions, dtype="<f2")
    padded[: len(numbers)] = numbers
    return base64.b64encode(padded.tobytes()).decode()


def record(n: int, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "row", "vector_id": f"i:{n}", "repo": "acme/app", "type": "issue",
        "number": n, "title": f"Title {n}", "content": f"content{n} text",
        "embedding": vector(1.0), **fields,
    }  # fmt: skip


def write(path: Path, records: Iterable[Any], header: Any = HEADER) -> Path:
    """Write a snapshot; a string or bytes among the records is written as it stands."""
    lines = [r if isinstance(r, (str, bytes)) else json.dumps(r) for r in (header, *records)]
    data = b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines) + b"\n"
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def command(index: TestIndex, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Run index_load on a file; returns (exit code, standard output, standard error)."""
    monkeypatch.setenv("INDEX_OWNER_URL", index.owner_url)

    def run(path: Path, **options: Any) -> tuple[int, str, str]:
        out, err = StringIO(), StringIO()
        try:
            call_command("index_load", str(path), stdout=out, stderr=err, **options)
        except CommandError as error:
            return error.returncode, out.getvalue(), err.getvalue() + str(error)
        return 0, out.getvalue(), err.getvalue()

    return run


def stored(index: TestIndex) -> list[str]:
    return [i for (i,) in index.execute("SELECT vector_id FROM search_docs ORDER BY vector_id")]


@pytest.mark.parametrize("name", ["s.jsonl.gz", "s.jsonl"])
def test_it_loads_packed_and_plain_files(
    index: TestIndex, command: Any, tmp_path: Path, name: str
) -> None:
    path = write(tmp_path / name, [record(n) for n in range(1, 8)])
    code, out, err = command(path, batch=3)
    assert (code, err) == (0, "")
    assert "7 rows" in out and "7 new, 0 changed, 0 as before" in out
    assert len(stored(index)) == 7


def test_loading_again_changes_nothing(index: TestIndex, command: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", [record(n) for n in range(1, 8)])
    command(path)
    before = index.execute("SELECT * FROM search_docs ORDER BY vector_id")
    assert "0 new, 0 changed, 7 as before" in command(path)[1]
    assert index.execute("SELECT * FROM search_docs ORDER BY vector_id") == before


def test_it_upserts_by_vector_id(index: TestIndex, command: Any, tmp_path: Path) -> None:
    command(write(tmp_path / "a.jsonl", [record(1), record(2)]))
    out = command(
        write(
            tmp_path / "b.jsonl", [record(2, title="Changed"), record(3), record(3, title="Last")]
        )
    )[1]
    assert "1 new, 1 changed" in out
    assert index.execute("SELECT title FROM search_docs ORDER BY vector_id") == [
        ("Title 1",), ("Changed",), ("Last",),
    ]  # fmt: skip


def test_replacing_empties_an_index_of_another_source(
    index: TestIndex, command: Any, tmp_path: Path
) -> None:
    first = write(tmp_path / "a.jsonl", [record(1), record(2)])
    other = write(tmp_path / "b.jsonl", [record(3)], {**HEADER, "source": "another"})
    command(first)
    assert "emptied" not in command(first, replace=True)[1]
    assert stored(index) == ["i:1", "i:2"]
    assert "it was emptied first" in command(other, replace=True)[1]
    assert stored(index) == ["i:3"]


def test_rows_of_an_older_normaliser_are_made_anew(
    index: TestIndex, command: Any, tmp_path: Path
) -> None:
    command(write(tmp_path / "a.jsonl", [record(1), record(2)]))
    index.execute("UPDATE search_docs SET content_fts = 'of another version'")
    index.execute("UPDATE index_info SET normaliser_version = '0/icu-1'")
    command(write(tmp_path / "b.jsonl", [record(3)]))
    words = index.execute("SELECT content_fts FROM search_docs ORDER BY vector_id")
    assert words == [("content1 text",), ("content2 text",), ("content3 text",)]
    assert index.execute("SELECT normaliser_version FROM index_info") == [(NORMALISER_VERSION,)]


BAD = [
    ("not JSON", "{", "not JSON"),
    ("a list", "[]", "not a JSON object"),
    ("no kind", {}, "kind is None; it must be row or edge"),
    ("no id", record(5, vector_id=""), "vector_id is missing"),
    ("no repo", record(5, repo=None), "repo is missing"),
    ("unknown type", record(5, type="mystery"), "type is 'mystery'; it must be one of issue"),
    ("title not text", record(5, title=7), "title must be text, not int"),
    ("labels not a list", record(5, labels="bug"), "labels must be a list of texts"),
    ("number not whole", record(5, number="5"), "number must be an integer"),
    ("number negative", record(5, number=-1), "between 0 and"),
    ("number too large", record(5, number=2**31), "between 0 and 2147483647"),
    ("time without zone", record(5, updated_at="2026-01-01T00:00:00"), "must carry a time zone"),
    ("time not a time", record(5, updated_at="yesterday"), "must be an ISO 8601 time"),
    ("time beyond UTC", record(5, updated_at="9999-12-31T23:59:59-09:00"), "years 1 to 9999"),
    ("time before UTC", record(5, created_at="0001-01-01T00:00:00+09:00"), "years 1 to 9999"),
    ("id too long", record(5, vector_id="x" * 5_000), "vector_id is longer than 500 bytes"),
    ("path too long", record(5, file_path="x" * 5_000), "file_path is longer than 2,000 bytes"),
    ("label too long", record(5, labels=["x" * 5_000]), "labels is longer than 500 bytes"),
    ("vector too short", record(5, embedding=vector(1.0, dimensions=8)), "holds 8 numbers"),
    ("vector not base64", record(5, embedding="***"), "embedding is not base64"),
    ("vector with NaN", record(5, embedding=vector(float("nan"))), "NaN or infinity"),
    ("invalid UTF-8", b'{"kind": "row", "title": "\xff"}', "not JSON"),
    ("deep nesting", "[" * 100_000, "not JSON"),
    ("edge without end", {"kind": "edge", "src_vector_id": "w:1"}, "dst_vector_id is missing"),
]


@pytest.mark.parametrize(("line", "problem"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_line_is_named_and_skipped(
    index: TestIndex, command: Any, tmp_path: Path, line: Any, problem: str
) -> None:
    path = write(tmp_path / "s.jsonl", [record(1), line, record(2)])
    code, out, err = command(path)
    assert code == 3
    assert "line 3: " in err and problem in err
    assert "1 bad lines were skipped" in err
    assert stored(index) == ["i:1", "i:2"]


def test_a_line_without_end_does_not_fill_the_memory(
    index: TestIndex, command: Any, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "s.jsonl", ['{"kind": "row", "content": "' + "x" * 9_000_000 + '"}', record(2)]
    )
    code, _, err = command(path)
    assert code == 3 and "line 2: longer than 4,000,000 bytes" in err
    assert stored(index) == ["i:2"]


def test_nul_and_lone_surrogates_are_repaired_and_counted(
    index: TestIndex, command: Any, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "s.jsonl",
        [
            record(1, title="a\0b"),
            record(2, title="a\ud800b", labels=["\0"]),
            record(3, content="x" * 9_000),
        ],
    )
    code, out, _ = command(path)
    assert code == 0
    assert "NUL replaced: 2 times" in out
    assert "lone surrogate replaced: 1 times" in out
    assert "content cut to 8,000 characters: 1 times" in out
    assert index.execute("SELECT title FROM search_docs WHERE number < 3 ORDER BY number") == [
        ("a\ufffdb",), ("a\ufffdb",),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({**HEADER, "dimensions": 8}, "the index holds 384-dimensional vectors"),
        (
            {**HEADER, "embedding_model": "other/model"},
            "vectors of other/model. Nothing was written",
        ),
    ],
)
def test_vectors_of_another_kind_are_refused_before_anything_is_written(
    index: TestIndex, command: Any, tmp_path: Path, header: Any, problem: str
) -> None:
    command(write(tmp_path / "a.jsonl", [record(1)]))
    before = index.execute("SELECT * FROM index_info")
    code, _, err = command(write(tmp_path / "b.jsonl", [record(2, embedding=None)], header))
    assert code == 1 and problem in err
    assert stored(index) == ["i:1"]
    assert index.execute("SELECT * FROM index_info") == before


def test_an_empty_index_takes_the_dimension_of_its_first_snapshot(
    index: TestIndex, command: Any, tmp_path: Path
) -> None:
    header = {**HEADER, "dimensions": 8}
    path = write(tmp_path / "s.jsonl", [record(1, embedding=vector(1.0, dimensions=8))], header)
    assert command(path)[0] == 0
    assert index.execute("SELECT dimensions FROM index_info") == [(8,)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a snapshot"),
        (b"hello\n", "is not a snapshot"),
        (b'{"kind": "header", "format": "rag-index-snapshot", "version": 2}\n', "format version 2"),
        (gzip.compress(b"x" * 100, mtime=0)[:20], "not a whole gzip file"),
    ],
    ids=["empty", "plain text", "another version", "cut gzip"],
)
def test_a_file_that_is_no_snapshot_is_refused(
    index: TestIndex, command: Any, tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "s"
    path.write_bytes(content)
    code, _, err = command(path)
    assert code == 1 and problem in err


def test_a_file_that_breaks_off_keeps_what_came_before(
    index: TestIndex, command: Any, tmp_path: Path
) -> None:
    whole = write(
        tmp_path / "s.jsonl.gz", [record(n, content=os.urandom(800).hex()) for n in range(1, 90)]
    )
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    code, _, err = command(cut, batch=10)
    assert code == 1 and "damaged or cut short after line" in err
    assert 30 < len(stored(index)) < 89


def test_without_a_url_the_remedy_is_named(
    index: TestIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INDEX_OWNER_URL", raising=False)
    path = write(tmp_path / "s.jsonl", [record(1)])
    with pytest.raises(CommandError, match="INDEX_OWNER_URL is not set"):
        call_command("index_load", str(path))


class Killed(BaseException):
    """Stands for kill -9: nothing of the program runs after it."""


@pytest.mark.bm25
def test_a_load_that_was_cut_off_goes_on_where_it_stopped(
    index: TestIndex, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "s.jsonl", [record(n) for n in range(1, 41)])
    batches = 0

    def die(position: int, rows: int) -> None:
        nonlocal batches
        batches += 1
        if batches == 3:
            raise Killed

    with pytest.raises(Killed):
        load.load_snapshot(path, index.owner_url, on_bad_line=print, on_progress=die, batch_rows=5)
    assert len(stored(index)) == 15
    code, out, _ = command(path, batch=5)
    assert code == 0
    assert "Went on after line 16 of an earlier load." in out
    assert "25 new" in out
    assert len(stored(index)) == 40
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        result = search(request=SearchRequest("content40", fusion="sparse_only"))
    assert result.trace.engines["sparse"] == "bm25"


def test_the_bundled_sample_shows_every_kind_of_fold(
    index: TestIndex, command: Any, sample_path: Path
) -> None:
    assert command(sample_path)[0] == 0
    counted = index.execute("SELECT type, count(*) FROM search_docs GROUP BY type")
    assert {kind for kind, _ in counted} == set(ROW_TYPES)
    assert 150 <= sum(count for _, count in counted) <= 400
    assert index.execute("SELECT count(DISTINCT repo) FROM search_docs") == [(2,)]
    assert index.execute("SELECT count(*) FROM search_docs WHERE embedding IS NULL") == [(0,)]


def test_schema_can_be_created_twice_by_either_role(index: TestIndex) -> None:
    store.init_schema(url_of(index.name), dimensions=DIMENSIONS)
    store.init_schema(index.owner_url, dimensions=DIMENSIONS)
    with index.writer() as writer:
        writer.store([])
