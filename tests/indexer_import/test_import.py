"""What an import keeps, completes, counts, names and refuses."""

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from indexer import import_staging
from indexer.git_history import vector_id
from tests.indexer_import.conftest import VECTOR, Deployment, command
from tests.indexer_import.generator import make
from tests.postgres import DIMENSIONS, MODEL

UTC_TIME = "to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"


def test_importing_again_changes_nothing(deployment: Deployment) -> None:
    deployment.row("i:1")
    deployment.row("i:2", vector=None)
    assert "2 new" in deployment.run()[1]
    before = deployment.stored("*")
    assert "0 new, 0 changed, 2 as before" in deployment.run()[1]
    assert deployment.stored("*") == before


def test_the_model_and_the_dimension_are_kept(deployment: Deployment) -> None:
    deployment.row("i:1", vector=[0.0, 2.0])
    code, out, _ = deployment.run(model="acme/model")
    assert code == 0 and "1 vectors of 2 dimensions" in out
    info = deployment.stored("embedding_model, dimensions, source", "index_info")
    assert info == [("acme/model", 2, "D1 export export.sql")]
    assert deployment.stored("embedding::text") == [("[0,1]",)]


@pytest.mark.parametrize(
    "values", [VECTOR, [v * 1e300 for v in VECTOR], [v * 1e-300 for v in VECTOR]]
)
def test_vectors_are_scaled_to_length_1(deployment: Deployment, values: list[float]) -> None:
    deployment.row("i:1", vector=values)
    deployment.run()
    (text,) = deployment.stored("embedding::text")[0]
    assert json.loads(text)[:3] == pytest.approx([0.6, 0.8, 0.0], abs=1e-3)


def test_values_come_from_d1_then_the_metadata_then_the_records(deployment: Deployment) -> None:
    review = vector_id("pc", "acme/app", "77")
    deployment.row(review, type="pr_review_comment", state="active", vector=None)
    deployment.vector(
        review, number=9, state="closed", author="ann", comment_id=77.0, line=12, file_path="a.py"
    )
    deployment.records.append(
        {"repo": "acme/app", "commentId": 77, "filePath": "b.py", "commitId": "abc", "line": 3,
         "author": "bob", "createdAt": "2026-01-01T00:00:00Z"}
    )  # fmt: skip
    assert deployment.run()[0] == 0
    columns = "number, state, author, comment_id, line, file_path, commit_sha, title, created_at"
    stored = deployment.stored(columns)[0]
    assert stored[:-1] == (1, "active", "ann", 77, 12, "a.py", "abc", "")
    assert stored[-1].isoformat().startswith("2026-01-01")


TITLES: list[tuple[dict[str, Any], dict[str, Any] | None, str]] = [
    ({"type": "issue"}, {"number": 1, "title": "Said"}, "Said"),
    ({"type": "pull_request"}, None, "Title"),
    ({"type": "release", "tag_name": "v1"}, {"tag_name": "v1", "name": "One"}, "One"),
    ({"type": "release", "tag_name": "v1", "content": "\n\nBody"}, None, "v1"),
    ({"type": "doc", "doc_path": "docs/a b.md"}, None, "docs/a b.md"),
    ({"type": "wiki_doc", "doc_path": "Home"}, None, "Home"),
    ({"type": "diff", "commit_sha": "0123456789", "file_path": "a.py"}, None, "0123456 a.py"),
    ({"type": "diff", "commit_sha": "0123456789"}, None, "0123456"),
    ({"type": "issue_comment"}, None, ""),
]


@pytest.mark.parametrize(("row", "record", "title"), TITLES)
def test_titles(
    deployment: Deployment, row: dict[str, Any], record: dict[str, Any] | None, title: str
) -> None:
    prefix, key = ("r", "v1") if row["type"] == "release" else ("i", "1")
    deployment.row(vector_id(prefix, "acme/app", key), **row)
    deployment.records += [{"repo": "acme/app", **record}] if record else []
    code, out, _ = deployment.run()
    assert code == 0
    assert deployment.stored("title, title_fts <> '' OR title = ''") == [(title, True)]
    guessed = record is None and row["type"] in {"issue", "pull_request", "release"}
    assert ("title is in no record: taken from the content: 1 times" in out) == guessed


TIMES = [
    ("2026-01-02T03:04:05Z", "2026-01-02 03:04:05", ""),
    ("2026-01-02T03:04:05.678+09:00", "2026-01-01 18:04:05", ""),
    ("2026-01-02 03:04:05", "2026-01-02 03:04:05", "updated_at names no time zone: read as UTC"),
    (1767323045, "2026-01-02 03:04:05", ""),
    (1767323045000, "2026-01-02 03:04:05", ""),
    ("1767323045", "2026-01-02 03:04:05", ""),
    (1767323045.5, "2026-01-02 03:04:05", ""),
    ("", None, ""),
    ("yesterday", None, "updated_at is no time: left out"),
    (9e99, None, "updated_at is no time: left out"),
    ("0001-01-01T00:00:00+14:00", None, "updated_at is no time: left out"),
    (b"2026", None, "updated_at is no time: left out"),
]


@pytest.mark.parametrize(("value", "time", "told"), TIMES)
def test_times(deployment: Deployment, value: Any, time: str | None, told: str) -> None:
    deployment.row("i:1", updated_at=value)
    code, out, _ = deployment.run()
    assert code == 0 and told in out
    assert deployment.stored(UTC_TIME) == [(time,)]


LABELS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("", {}, []),
    ("bug", {}, ["bug"]),
    ("bug, help wanted,,日本", {}, ["bug", "help wanted", "日本"]),
    ("a,b,c", {"label_0": "a,b", "label_1": "c", "label_2": ""}, ["a,b", "c"]),
    (
        "a,b,c,d,e,f",
        {"label_0": "a", "label_1": "b,c", "label_2": "d"},
        ["a", "b,c", "d", "e", "f"],
    ),
    ("a,b", {"label_0": "old"}, ["a", "b"]),
    ("a,b", {"label_0": "a,bc"}, ["a", "b"]),
]


@pytest.mark.parametrize(("text", "metadata", "labels"), LABELS)
def test_labels_are_split_at_commas_that_part_names(
    deployment: Deployment, text: str, metadata: dict[str, Any], labels: list[str]
) -> None:
    deployment.row("i:1", labels=text, assignees=text, vector=None)
    deployment.vector("i:1", **metadata)
    deployment.run()
    plain = [part.strip() for part in text.split(",") if part.strip()]
    assert deployment.stored("labels, assignees") == [(labels, plain)]


def test_what_is_missing_is_counted_and_named(deployment: Deployment) -> None:
    deployment.row("i:1")
    deployment.row("i:2", vector=None, type="doc", doc_path="a.md")
    deployment.vector("i:gone", blob_sha_before="x", surprise=1, number=-1)
    deployment.vectors.append({"id": "i:1", "values": VECTOR, "namespace": "n", "metadata": 5})
    deployment.records += [
        {"repo": "acme/app", "number": 404, "title": "Gone"},
        {"vector_id": "i:1", "title": "One", "created_at": 1767323045, "weather": "fine"},
    ]
    for row in deployment.rows:
        row["mood"] = "good"
    deployment.sql = "INSERT INTO search_docs_nat_fts_data VALUES(1,X'00');\n"
    code, out, err = deployment.run()
    assert (code, err) == (0, "")
    gone = vector_id("i", "acme/app", "404")
    for told in (
        "1 rows have no vector (index_embed --missing makes them): i:2\n",
        "1 rows have no time of creation: i:2\n",
        "1 vectors have no row: left out: i:gone\n",
        f"1 records have no row: left out: {gone}\n",
        "no column for search_docs.mood: 2 values",
        "no column for records.weather: 1 values",
        "namespace of a vector: no column for it: 1 times",
        "metadata of a vector is no object: left out: 1 times",
        "search_docs_nat_fts_data 1",
    ):
        assert told in out
    assert deployment.stored("vector_id, embedding IS NULL") == [("i:1", False), ("i:2", True)]


def test_names_from_a_file_tell_the_terminal_nothing(deployment: Deployment) -> None:
    deployment.row("i:1\x1b[2J", vector=None)
    deployment.vector("i:\ud800", **{"\x1b]0;": 1})
    deployment.records.append({"vector_id": "\udfff", "\ud800\x07": 1})
    deployment.row("i:2", **{"\x1b": "x"})
    deployment.sql = 'INSERT INTO "\x1b\udcff" VALUES(1);\x1b;'
    code, out, err = deployment.run()
    assert code == 3 and "i:1\ufffd[2J" in out and "export.sql line " in err
    assert all(line.isprintable() for line in (out + err).split("\n"))


def test_nothing_beside_a_row_costs_the_row(deployment: Deployment) -> None:
    deployment.row("i:1", number=0, vector=None)
    deployment.vector("i:1", number=-7, line="x", author=["a"], comment_id=2**70, milestone=True)
    deployment.records.append({"vector_id": "i:1", "number": 5, "title": ["no"], "labels": [1]})
    code, out, _ = deployment.run()
    assert code == 0
    assert deployment.stored("number, line, author, labels, title") == [(5, 0, "", [], "Title")]
    assert "comment_id beside the row is unusable: left out: 1 times" in out


def test_edges_and_repairs(deployment: Deployment) -> None:
    deployment.row("w:1", type="wiki_doc", doc_path="Home", content="a\udcffb", milestone=b"v\xff")
    deployment.edges += [
        {"src_vector_id": "w:1", "dst_vector_id": "w:2", "repo": "acme/app", "src_slug": "Home",
         "dst_slug": "Rota", "edge_kind": "", "updated_at": ""},
        {"src_vector_id": "w:1", "dst_vector_id": "", "repo": "acme/app"},
    ]  # fmt: skip
    code, out, err = deployment.run()
    assert code == 3 and "dst_vector_id is missing" in err and "1 edges" in out
    assert deployment.stored("src_slug, dst_slug, edge_kind, updated_at", "doc_edges") == [
        ("Home", "Rota", "mention", None)
    ]
    assert deployment.stored("content, content_fts, milestone") == [
        ("a\ufffdb", "a ꞏfffdꞏ b", "v\ufffd")
    ]


def test_text_alone_can_be_imported(deployment: Deployment) -> None:
    deployment.row("i:1", vector=None)
    code, out, _ = deployment.run(vectors=[], dimensions=DIMENSIONS)
    assert code == 0 and "no vector" not in out
    assert deployment.stored("embedding, content_fts") == [(None, "title body")]


FILES: list[tuple[str, dict[str, Any], str]] = [
    ("", {}, "no INSERT INTO search_docs or doc_edges"),
    ("CREATE TABLE x(a);", {}, "no INSERT INTO search_docs or doc_edges"),
    ("", {"d1": [Path("/nowhere.sql")]}, "There is no file /nowhere.sql"),
    ("", {"batch": 0}, "--batch must be at least 1"),
    ("", {"model": " "}, "--model must name"),
]


@pytest.mark.parametrize(("sql", "options", "problem"), FILES)
def test_what_cannot_be_imported_is_told(
    deployment: Deployment, sql: str, options: dict[str, Any], problem: str
) -> None:
    deployment.sql = sql
    deployment.vector("i:1")
    code, _, err = deployment.run(**options)
    assert code == 1 and problem in err


def test_an_export_that_breaks_off_keeps_what_came_before(deployment: Deployment) -> None:
    for n in range(7):
        deployment.row(f"i:{n}")
    deployment.sql = "INSERT INTO search_docs VALUES('i:8','acme"
    code, _, err = deployment.run(batch=3)
    assert code == 1 and "is cut short after line" in err and "came before is stored" in err
    assert len(deployment.stored("vector_id")) == 7
    assert deployment.stored("key", "indexer_state") == []


def test_packed_and_divided_files_and_arrays_of_records(
    deployment: Deployment, sample_path: Path
) -> None:
    files = make(sample_path, deployment.folder, "shell")
    docs, _, edges = files.d1.read_text().partition("CREATE TABLE IF NOT EXISTS")
    parts = [deployment.folder / "docs.sql.gz", deployment.folder / "edges.sql"]
    parts[0].write_bytes(gzip.compress(docs.encode()))
    parts[1].write_text(f"CREATE TABLE IF NOT EXISTS{edges}")
    records = [json.loads(line) for line in files.records.read_text().splitlines()]
    files.records.write_text(f"{json.dumps(records[:9], indent=1)}\n{json.dumps(records[9:])}")
    code, out, _ = command(d1=parts, vectors=[files.vectors], records=[files.records], model=MODEL)
    assert code == 0
    assert f"{len(records)} records read" in out and "305 new" in out and "19 edges" in out


def test_a_broken_array_is_refused(deployment: Deployment) -> None:
    deployment.row("i:1")
    deployment.records.append('[{"repo": "acme/app", "number": 1},\n {"repo": oops}]')
    code, _, err = deployment.run()
    assert code == 1 and "records.ndjson line 2: not JSON" in err
    assert deployment.stored("vector_id") == []


def test_a_disk_that_is_full_is_told(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(import_staging.Staging, "add_vector", full)
    deployment.row("i:1")
    code, _, err = deployment.run()
    assert code == 1 and "disk is full. TMPDIR names its folder" in err
