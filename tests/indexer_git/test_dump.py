"""A dump carries an index whole: loading it gives the same rows, dumping again the same file."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from indexer import load, records, store
from indexer.dump import dump_snapshot
from indexer.errors import IndexerError
from tests.postgres import TestIndex, row

MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123456, timezone(timedelta(hours=9)))
# A value of each column that is neither its default nor another column's.
FULL: dict[str, Any] = {
    "repo": "acme/設計 app",
    "type": "pr_review_comment",
    "state": "CHANGES_REQUESTED",
    "labels": ["a, b", 'quote"', "{}", "設計", ""],
    "milestone": "v1\n",
    "assignees": ["one", "NULL"],
    "created_at": MOMENT.isoformat(),
    "updated_at": (MOMENT + timedelta(days=1)).isoformat(),
    "number": 2**31 - 1,
    "tag_name": "v1.0",
    "doc_path": "docs/\u2028.md",
    "wiki_extension": "md",
    "commit_sha": "c" * 40,
    "file_path": "a\nb.md",
    "file_status": "renamed",
    "commit_date": "0001-01-01T00:00:00+00:00",
    "commit_author": "Ada",
    "author": "Grace",
    "comment_id": 2**63 - 1,
    "review_id": 2**53 + 1,
    "line": 7,
    "title": "title 🎉",
    "content": "content \x01 \\ \x7f\ud7ff\ue000",
    "embedding": [0.1, -0.5, 6.1e-5, 65504.0],
}
EDGE = {
    "src_vector_id": "w:1",
    "dst_vector_id": "w:2",
    "repo": "acme/app",
    "src_slug": "Home",
    "dst_slug": "設計",
    "edge_kind": "mention",
    "updated_at": MOMENT,
}


def test_the_full_row_sets_every_column() -> None:
    assert {"vector_id", *FULL} == {*records.COLUMNS, "embedding"}
    assert set(EDGE) == set(records.EDGE_COLUMNS)


def tables(index: TestIndex) -> list[Any]:
    """Every column of every table, but for times of writing and the owner's own."""
    columns = [
        name
        for (name,) in index.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'search_docs'::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attname <> 'indexed_at' ORDER BY attname"
        )
    ]
    chosen = ", ".join(f"{name}::text" for name in columns)
    return [
        columns,
        index.execute(f"SELECT {chosen} FROM search_docs ORDER BY vector_id"),
        index.execute("SELECT * FROM doc_edges ORDER BY 1, 2"),
        index.execute(
            "SELECT embedding_model, dimensions, normaliser_version, source FROM index_info"
        ),
    ]


def load_into(index: TestIndex, path: Path) -> load.LoadReport:
    def refuse(number: int, problem: str) -> None:
        raise AssertionError((number, problem))

    return load.load_snapshot(path, index.owner_url, on_bad_line=refuse)


def test_load_of_dump_equals_the_index(make_index: Callable[[], TestIndex], tmp_path: Path) -> None:
    first, second = make_index(), make_index()
    edge = records.parse_edge({**EDGE, "updated_at": MOMENT.isoformat()}, repairs=records.Repairs())
    bare = row("x:2", type="doc", state="")
    first.load([row("x:1", **FULL), bare, row("X:3"), row("é:4")], [edge])
    path = tmp_path / "dump.jsonl.gz"
    assert dump_snapshot(first.owner_url, path) == 5
    report = load_into(second, path)
    assert (report.tally.inserted, report.repairs.counts) == (4, {})
    assert tables(second) == tables(first)
    again = tmp_path / "again.jsonl.gz"
    dump_snapshot(second.owner_url, again)
    assert again.read_bytes() == path.read_bytes()
    # Rows come by id in code point order, then the edges.
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [line.get("vector_id") for line in lines] == [None, "X:3", "x:1", "x:2", "é:4", None]
    assert [line["kind"] for line in lines] == ["header", *["row"] * 4, "edge"]


def test_the_sample_survives_the_journey(
    make_index: Callable[[], TestIndex], sample_path: Path, tmp_path: Path
) -> None:
    first, second = make_index(), make_index()
    load_into(first, sample_path)
    seen: list[tuple[int, int]] = []
    written = dump_snapshot(
        first.owner_url,
        tmp_path / "dump.gz",
        on_progress=lambda done, total: seen.append((done, total)),
    )
    load_into(second, tmp_path / "dump.gz")
    assert tables(second) == tables(first)
    assert seen[-1] == (written, written)


def test_a_dump_is_of_one_moment(make_index: Callable[[], TestIndex], tmp_path: Path) -> None:
    index = make_index()
    index.load([row(f"x:{n:04}") for n in range(1_500)])

    def write(done: int, total: int) -> None:
        if done == 1_000:
            # Not to the end: rewriting the table would wait for the dump.
            with index.writer() as writer:
                writer.store([row("x:9999")], deleted=["x:1499"])

    assert dump_snapshot(index.owner_url, tmp_path / "dump.gz", on_progress=write) == 1_500
    assert index.execute("SELECT count(*) FROM search_docs") == [(1_500,)]
    lines = gzip.decompress((tmp_path / "dump.gz").read_bytes()).splitlines()
    assert b"x:1499" in lines[-1]


def test_an_index_without_rows(make_index: Callable[[], TestIndex], tmp_path: Path) -> None:
    index = make_index()
    with pytest.raises(IndexerError, match="nothing was ever written"):
        dump_snapshot(index.owner_url, tmp_path / "dump.gz")
    assert list(tmp_path.iterdir()) == []
    index.load([])
    assert dump_snapshot(index.owner_url, tmp_path / "dump.gz") == 0
    load_into(make_index(), tmp_path / "dump.gz")


def test_a_file_that_cannot_be_written_leaves_nothing(
    make_index: Callable[[], TestIndex], tmp_path: Path
) -> None:
    index = make_index()
    index.load([row("x:1")])
    (tmp_path / "folder").mkdir()
    with pytest.raises(IndexerError, match="cannot write"):
        dump_snapshot(index.owner_url, tmp_path / "nowhere" / "dump.gz")
    with pytest.raises(IndexerError, match="cannot write"):
        dump_snapshot(index.owner_url, tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_times_do_not_depend_on_the_databases_zone(
    make_index: Callable[[], TestIndex], tmp_path: Path
) -> None:
    index = make_index()
    index.load([row("x:1", created_at=datetime(2024, 1, 1, tzinfo=UTC).isoformat())])
    dump_snapshot(index.owner_url, tmp_path / "one.gz")
    with store.connect(index.owner_url) as connection:
        connection.execute("ALTER ROLE CURRENT_USER SET timezone = 'Asia/Tokyo'")
    try:
        dump_snapshot(index.owner_url, tmp_path / "two.gz")
    finally:
        with store.connect(index.owner_url) as connection:
            connection.execute("ALTER ROLE CURRENT_USER RESET timezone")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
