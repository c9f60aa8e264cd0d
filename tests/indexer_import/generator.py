"""Makes a reference deployment's files from a snapshot: a D1 export, Vectorize's NDJSON, records.

    python -m tests.indexer_import.generator SNAPSHOT FOLDER [STYLE]

The styles are those of the programs that write such text: `wrangler` names the columns and writes
line ends by `replace`; `shell` is sqlite3's `.dump` with the shadow tables of full-text search;
`unistr` is that of newer sqlite3 shells; `concatenated` that of old ones.
"""

import base64
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from indexer.snapshot import open_snapshot

# Columns that the reference's table has; a later migration added `content_fts` at the end.
COLUMNS = (
    "vector_id", "repo", "type", "state", "labels", "milestone", "assignees", "updated_at",
    "number", "tag_name", "doc_path", "commit_sha", "file_path", "file_status", "commit_date",
    "commit_author", "tokenizer_kind", "content", "indexed_at", "content_fts",
)  # fmt: skip
EDGE_COLUMNS = (
    "src_vector_id", "dst_vector_id", "repo", "src_slug", "dst_slug", "edge_kind", "updated_at",
)  # fmt: skip
METADATA = (
    "repo", "number", "type", "state", "labels", "milestone", "assignees", "updated_at",
    "tag_name", "wiki_extension", "commit_sha", "file_path", "file_status", "commit_date",
    "commit_author", "author", "comment_id", "review_id", "line",
)  # fmt: skip
# Comments within a table's definition hold what a careless reader trips over.
SCHEMA = {
    "d1_migrations": """CREATE TABLE d1_migrations(
\t\tid         INTEGER PRIMARY KEY AUTOINCREMENT,
\t\tname       TEXT UNIQUE,
\t\tapplied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)""",
    "search_docs": """CREATE TABLE search_docs (
  -- It's the vector's id ("{prefix}:{digest}"); don't split at this ';' or that ')'.
  vector_id TEXT NOT NULL PRIMARY KEY, repo TEXT NOT NULL, type TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT '', labels TEXT NOT NULL DEFAULT '', /* a, 'b' */
  milestone TEXT NOT NULL DEFAULT '', assignees TEXT NOT NULL DEFAULT '',
  updated_at TEXT NOT NULL DEFAULT '', number INTEGER NOT NULL DEFAULT 0,
  tag_name TEXT NOT NULL DEFAULT '', doc_path TEXT NOT NULL DEFAULT '',
  commit_sha TEXT NOT NULL DEFAULT '', file_path TEXT NOT NULL DEFAULT '',
  file_status TEXT NOT NULL DEFAULT '', commit_date TEXT NOT NULL DEFAULT '',
  commit_author TEXT NOT NULL DEFAULT '',
  tokenizer_kind TEXT NOT NULL CHECK (tokenizer_kind IN ('nat', 'code')),
  content TEXT NOT NULL, indexed_at TEXT NOT NULL, content_fts TEXT NOT NULL DEFAULT '')""",
    "doc_edges": """CREATE TABLE "doc_edges" (
  "src_vector_id" TEXT NOT NULL, `dst_vector_id` TEXT NOT NULL, [repo] TEXT NOT NULL DEFAULT '',
  src_slug TEXT NOT NULL DEFAULT '', dst_slug TEXT NOT NULL DEFAULT '',
  edge_kind TEXT NOT NULL DEFAULT 'mention', updated_at TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (src_vector_id, dst_vector_id))""",
}
REST_OF_SCHEMA = (
    "CREATE INDEX idx_search_docs_repo ON search_docs (repo, updated_at DESC)",
    """CREATE TRIGGER trg_search_docs_ai AFTER INSERT ON search_docs
BEGIN
  INSERT INTO search_docs_nat_fts_v3(rowid, content)
    SELECT new.rowid, CASE WHEN 1 THEN new.content_fts END WHERE new.tokenizer_kind = 'nat';
  INSERT INTO search_docs VALUES('evil');
END""",
    "CREATE VIEW nat AS SELECT rowid, content_fts AS content FROM search_docs",
)
SHADOW = """PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)
VALUES('table','search_docs_fts','search_docs_fts',0,'CREATE VIRTUAL TABLE search_docs_fts
USING fts5(content, content=''search_docs'')');
CREATE TABLE IF NOT EXISTS 'search_docs_fts_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO search_docs_fts_data VALUES(1,X'00ff27');
INSERT INTO search_docs_fts_data VALUES(10,X'');
PRAGMA writable_schema=OFF;"""

Quote = Callable[[str], str]


@dataclass(frozen=True)
class Files:
    """The three files of a deployment."""

    d1: Path
    vectors: Path
    records: Path


def make(snapshot: Path, folder: Path, style: str = "wrangler") -> Files:
    """Write the files of a deployment that holds what a snapshot holds."""
    with open_snapshot(snapshot) as reader:
        lines = [line.record for line in reader if line.record]
    rows = [line for line in lines if line["kind"] == "row"]
    edges = [line for line in lines if line["kind"] == "edge"]
    files = Files(folder / "export.sql", folder / "vectors.ndjson", folder / "records.ndjson")
    files.d1.write_text("\n".join(export(rows, edges, style)) + "\n", newline="")
    files.vectors.write_text(ndjson(map(vector, filter(lambda r: r["embedding"], rows))))
    files.records.write_text(ndjson(filter(None, map(record, rows))))
    return files


def export(
    rows: Iterable[Mapping[str, Any]], edges: Iterable[Mapping[str, Any]], style: str = "wrangler"
) -> Iterator[str]:
    """Yield the statements of an export."""
    wrangler = style == "wrangler"
    yield "PRAGMA defer_foreign_keys=TRUE;" if wrangler else "PRAGMA foreign_keys=OFF;"
    if not wrangler:
        yield "BEGIN TRANSACTION;"
    yield f"{SCHEMA['d1_migrations']};"
    yield insert("d1_migrations", {"id": 1, "name": "0001.sql", "applied_at": "2026"}, style)
    yield f"{SCHEMA['search_docs']};"
    for row in rows:
        yield insert("search_docs", d1_row(row), style)
    yield SCHEMA["doc_edges"].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS") + ";"
    for edge in edges:
        yield insert("doc_edges", {name: edge.get(name) or "" for name in EDGE_COLUMNS}, style)
    if not wrangler:
        yield SHADOW
    yield "DELETE FROM sqlite_sequence;"
    yield insert("sqlite_sequence", {"name": "d1_migrations", "seq": 1}, style)
    yield from (f"{statement};" for statement in REST_OF_SCHEMA)
    if not wrangler:
        yield "COMMIT;"


def insert(table: str, values: Mapping[str, Any], style: str = "wrangler") -> str:
    """Return the INSERT of a row as a program writes it."""
    quoted = ",".join(literal(value, style) for value in values.values())
    if style == "wrangler":
        names = ",".join(f'"{name}"' for name in values)
        return f'INSERT INTO "{table}" ({names}) VALUES({quoted});'
    return f"INSERT INTO {table} VALUES({quoted});"


def literal(value: Any, style: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return QUOTES[style](value) if isinstance(value, str) else repr(value)


def quote_by_replace(text: str) -> str:
    """As D1 and the sqlite3 shell before 3.50: line ends stand for something that is not there."""
    quoted = "'" + text.replace("'", "''")
    wraps = ""
    for character, code, likely in (("\n", 10, ("\\n", "\\012")), ("\r", 13, ("\\r", "\\015"))):
        if character in text:
            more = (f"({likely[0]}{n})" for n in range(len(text)))
            name = next(candidate for candidate in (*likely, *more) if candidate not in text)
            quoted = "replace(" + quoted.replace(character, name)
            wraps += f",'{name}',char({code}))"
    return f"{quoted}'{wraps}"


def quote_by_unistr(text: str) -> str:
    """As the sqlite3 shell from 3.50 on, where a text holds control characters."""
    quoted = text.replace("'", "''")
    if not re.search(r"[\x01-\x1f]", text):
        return f"'{quoted}'"
    escaped = re.sub(
        r"[\x01-\x1f]", lambda m: f"\\u{ord(m.group()):04x}", quoted.replace("\\", "\\\\")
    )
    return f"unistr('{escaped}')"


def quote_by_concatenation(text: str) -> str:
    quoted = text.replace("'", "''")
    return "'" + re.sub(r"[\n\r]", lambda m: f"'||char({ord(m.group())})||'", quoted) + "'"


QUOTES: Mapping[str, Quote] = {
    "wrangler": quote_by_replace,
    "shell": quote_by_replace,
    "unistr": quote_by_unistr,
    "concatenated": quote_by_concatenation,
}


def d1_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as the reference keeps it: texts of commas, no title, no author."""
    texts = {name: ",".join(row.get(name) or []) for name in ("labels", "assignees")}
    made = {
        "tokenizer_kind": "code" if row["type"] == "diff" else "nat",
        "indexed_at": "2026-07-01T00:00:00.000Z",
        "content_fts": "segmented in another way",
    }
    values = {**row, **texts, **made}
    return {
        name: 0 if name == "number" and not values.get(name) else values.get(name) or ""
        for name in COLUMNS
    }


def vector(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a vector and its metadata as Vectorize gives them."""
    numbers = np.frombuffer(base64.b64decode(row["embedding"]), "<f2").astype(float)
    values = {**row, **{name: ",".join(row.get(name) or []) for name in ("labels", "assignees")}}
    metadata = {name: values[name] for name in METADATA if values.get(name)}
    if row["type"] in {"doc", "wiki_doc"}:
        metadata["doc_path" if row["type"] == "doc" else "wiki_path"] = row["doc_path"]
    if row["type"] == "diff":
        metadata |= {"blob_sha_before": "a" * 40, "blob_sha_after": "b" * 40}
    labels = sorted(row.get("labels") or [])
    metadata |= {f"label_{n}": labels[n] if n < len(labels) else "" for n in range(4)}
    return {"id": row["vector_id"], "values": numbers.tolist(), "metadata": metadata}


# Type → name of a record's fields in the store, and where they come from.
_COMMENT = {"comment_id": "comment_id", "number": "number", "author": "author"}
RECORDS: Mapping[str, Mapping[str, str]] = {
    "issue": {"number": "number", "type": "type", "title": "title", "state": "state"},
    "pull_request": {"number": "number", "type": "type", "title": "title", "state": "state"},
    "release": {"tag_name": "tag_name", "name": "title"},
    "doc": {"path": "doc_path"},
    "wiki_doc": {"page_name": "doc_path", "extension": "wiki_extension"},
    "issue_comment": _COMMENT,
    "pr_review": {"review_id": "review_id", "number": "number", "author": "author"},
    "pr_review_comment": {**_COMMENT, "file_path": "file_path", "line": "line"},
}  # fmt: skip


def record(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the record store says of a row; comments in camelCase, as its own answers are."""
    if (fields := RECORDS.get(row["type"])) is None:
        return None
    created = "submitted_at" if row["type"] == "pr_review" else "created_at"
    made = {"repo": row["repo"], **{name: row.get(source) for name, source in fields.items()}}
    made |= {created: row.get("created_at"), "body_hash": "0" * 64}
    if "comment" in row["type"]:
        return {re.sub(r"_([a-z])", lambda m: m[1].upper(), n): v for n, v in made.items()}
    return made


def ndjson(records: Iterable[Any]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
