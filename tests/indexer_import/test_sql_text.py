"""The SQL text of an export: read as SQLite reads it, run never, bounded, told by line."""

import sqlite3
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexer import d1_lexer
from indexer.d1_export import D1Export, D1Row
from indexer.errors import BadSource
from indexer.packed import open_packed
from tests.indexer_import import generator
from tests.indexer_import.generator import QUOTES, SCHEMA

EDGES = f"{SCHEMA['doc_edges']};\n"
TWO = "CREATE TABLE doc_edges (a TEXT, b);\n"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Read SQL text; returns the rows and what was passed over."""

    def run(text: str | bytes) -> tuple[list[D1Row], dict[str, int]]:
        path = tmp_path / "export.sql"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        with open_packed(path) as source:
            export = D1Export(source)
            return list(export), export.ignored

    return run


def values(rows: Iterable[D1Row]) -> list[list[Any]]:
    rows = list(rows)
    assert [row.problem for row in rows if row.problem] == []
    return [list(row.values.values()) for row in rows]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            TEXTS,
            st.one_of(
                st.none(),
                st.integers(-(2**63) + 1, 2**63 - 1),
                st.floats(allow_nan=False, allow_infinity=False),
                st.binary(max_size=20),
            ),
        ),
        max_size=6,
    ),
    style=st.sampled_from(sorted(QUOTES)),
)
@example(rows=[("\\n\\012\n(\\n0)'';\r\n--", b"")], style="wrangler")
@example(rows=[("\ufeff\\u000a\\\n\x1b'", 1e300)], style="unistr")
def test_what_any_program_writes_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], style: str
) -> None:
    lines = [generator.insert("doc_edges", {"a": a, "b": b}, style) for a, b in rows]
    path = tmp_path_factory.getbasetemp() / "any.sql"
    path.write_bytes((TWO + "\n".join(lines)).encode())
    with open_packed(path) as source:
        assert values(D1Export(source)) == [list(row) for row in rows]


@pytest.mark.parametrize("style", ["wrangler", "concatenated"])
def test_sqlite_itself_reads_the_generated_export_alike(
    read: Any, tmp_path: Path, sample_path: Path, style: str
) -> None:
    text = generator.make(sample_path, tmp_path, style).d1.read_text().replace(generator.SHADOW, "")
    database = sqlite3.connect(":memory:")
    database.executescript(text)
    for table in ("search_docs", "doc_edges"):
        expected = database.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
        rows = [row for row in read(text)[0] if row.table == table]
        assert len(expected) > 10
        assert [tuple(row) for row in values(rows)] == expected
    database.close()


LITERALS = [
    ("'it''s'", "it's"),
    ("''", ""),
    ("'a\n;--)''/*'", "a\n;--)'/*"),
    ("-9", -9),
    ("+9.5e-3", 0.0095),
    (".5", 0.5),
    ("0x1F", 31),
    ("9223372036854775808", 9223372036854775808.0),
    ("1e999", float("inf")),
    ("NULL", None),
    ("true", 1),
    ("X'00Ff'", b"\x00\xff"),
    ("x''", b""),
    ("replace('a\\nb','\\n',char(10))", "a\nb"),
    ("REPLACE(replace('a\\nb\\r','\\r',char(13)),'\\n',char(10))", "a\nb\r"),
    ("replace('abc','','x')", "abc"),
    ("char(26085, 26412, -1)", "日本\ufffd"),
    ("unistr('\\u65e5\\U0001F600\\+01f600\\0041\\\\')", "日😀😀A\\"),
    ("'a'||char(10)||'b'", "a\nb"),
    ("/* c ' */ 'x' -- ' ;\n", "x"),
]


@pytest.mark.parametrize(("text", "value"), LITERALS, ids=[text for text, _ in LITERALS])
def test_a_literal(read: Any, text: str, value: Any) -> None:
    rows, _ = read(f"{TWO}INSERT INTO doc_edges VALUES({text},1);")
    assert values(rows) == [[value, 1]]


STATEMENTS = [
    ("INSERT INTO doc_edges VALUES('a',1),('b',2);", [["a", 1], ["b", 2]]),
    ('INSERT OR IGNORE INTO main."doc_edges"("b",[a])VALUES(1,2)', [[1, 2]]),
    ("REPLACE INTO `doc_edges` VALUES(1,2);;;", [[1, 2]]),
    ("\ninsert into DOC_EDGES values ( 1 , 2 ) ;", [[1, 2]]),
    ("INSERT INTO other VALUES('INSERT INTO doc_edges VALUES(1,2);');", []),
    ("INSERT INTO doc_edges_fts VALUES(1,2);", []),
    ("CREATE VIRTUAL TABLE f USING fts5(a, b, tokenize = 'porter; x');", []),
    (
        "CREATE TRIGGER t AFTER INSERT ON x BEGIN INSERT INTO doc_edges VALUES(1,2);"
        " SELECT CASE WHEN 1 THEN 2 END; END; INSERT INTO doc_edges VALUES(3,4);",
        [[3, 4]],
    ),
    ("ATTACH DATABASE '/etc/passwd' AS x; DROP TABLE doc_edges; PRAGMA writable_schema=ON;", []),
]


@pytest.mark.parametrize(
    ("text", "expected"), STATEMENTS, ids=[text[:40] for text, _ in STATEMENTS]
)
def test_a_statement(read: Any, text: str, expected: list[list[Any]]) -> None:
    assert values(read(TWO + text)[0]) == expected


BAD = [
    ("INSERT INTO doc_edges VALUES(1);", "a row holds 1 values for 2 columns"),
    ("INSERT INTO doc_edges VALUES(1,2,3);", "a row holds 3 values for 2 columns"),
    ("INSERT INTO doc_edges SELECT * FROM x;", "only INSERT … VALUES"),
    ("INSERT INTO doc_edges DEFAULT VALUES;", "only INSERT … VALUES"),
    ("INSERT INTO doc_edges VALUES((SELECT 1),2);", "a value was expected, not '('"),
    ("INSERT INTO doc_edges VALUES(load_extension('x'),2);", "load_extension is not one"),
    ("INSERT INTO doc_edges VALUES(ERROR,2);", "a value was expected, not 'ERROR'"),
    ("INSERT INTO doc_edges VALUES(NaN,2);", "a value was expected, not 'NaN'"),
    ("INSERT INTO doc_edges VALUES(-'a',2);", "a sign stands before"),
    ("INSERT INTO doc_edges VALUES(X'0g',2);", "hexadecimal"),
    ("INSERT INTO doc_edges VALUES(unistr('\\u12'),2);", "an escape that is none"),
    ("INSERT INTO doc_edges VALUES(replace('a','b'),2);", "replace takes 3 values, not 2"),
    ("INSERT INTO doc_edges(a,a) VALUES(1,2);", "the column a is named twice"),
    ("INSERT INTO search_docs VALUES(1,2);", "no CREATE TABLE search_docs came before"),
    (f"INSERT INTO doc_edges VALUES({'replace(' * 5000}1,2);", "nested deeper than 8"),
    (f"INSERT INTO doc_edges VALUES(1{',1' * 200});", "longer than D1 stores"),
    (f"INSERT INTO doc_edges VALUES('{'x' * 2_000_001}',2);", "longer than 2,000,000"),
    (
        f"INSERT INTO doc_edges VALUES(replace('{'a' * 9_999}','a','{'b' * 9_999}'),2);",
        "longer than 2,000,000",
    ),
    ("garbage here", ""),
    (")", "a statement was expected"),
]


@pytest.mark.parametrize(("text", "problem"), BAD, ids=[problem or text for text, problem in BAD])
def test_a_statement_that_cannot_be_read_costs_itself(read: Any, text: str, problem: str) -> None:
    rows, ignored = read(
        f"{TWO}\nINSERT INTO doc_edges VALUES(1,2);\n{text};\nINSERT INTO doc_edges VALUES(3,4);"
    )
    assert [list(row.values.values()) for row in rows if not row.problem] == [[1, 2], [3, 4]]
    bad = [(row.line, row.problem) for row in rows if row.problem]
    assert len(bad) == (1 if problem else 0)
    assert all(line == 4 and problem in told for line, told in bad)
    assert problem or ignored["GARBAGE"] == 1


def test_values_before_a_clause_that_is_not_read_stand(read: Any) -> None:
    rows, _ = read(f"{TWO}INSERT INTO doc_edges VALUES(1,2) ON CONFLICT DO NOTHING;")
    assert [row.problem for row in rows] == [None, "'ON' follows the values"]


@pytest.mark.parametrize("cut", ["'ab", "'ab'", "'ab',", "'ab',2", "replace('a'", "X'00"])
def test_a_text_that_breaks_off_is_told(read: Any, cut: str) -> None:
    with pytest.raises(BadSource, match=r"export.sql is cut short after line 2"):
        read(f"{TWO}INSERT INTO doc_edges VALUES({cut}")


def test_columns_are_told_from_constraints(read: Any) -> None:
    rows, _ = read(f"{EDGES}INSERT INTO doc_edges VALUES({','.join('1234567')});")
    assert tuple(rows[0].values) == generator.EDGE_COLUMNS
    rows, _ = read(
        "CREATE TEMP TABLE IF NOT EXISTS search_docs(\"check\" INT CHECK (x IN (1, 'a,b')), 'q' ,"
        " [z], CONSTRAINT k UNIQUE (q, z), PRIMARY KEY(q), FOREIGN KEY (z) REFERENCES u(v));"
        "INSERT INTO search_docs VALUES(1,2,3);"
    )
    assert rows[0].values == {"check": 1, "q": 2, "z": 3}


def test_bytes_that_are_no_text_do_not_end_the_reading(read: Any) -> None:
    rows, _ = read(b"\xef\xbb\xbf" + TWO.encode() + b"INSERT INTO doc_edges VALUES('\xff',1);")
    assert values(rows) == [["\udcff", 1]]


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_it_does_not_matter_where_a_block_ends(
    read: Any, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    text = (
        EDGES + "/* ; * / **/ -- it's\nINSERT INTO doc_edges VALUES('a''日\\n',replace('a\\nb',"
        "'\\n',char(10)),X'00ff',-1.5e+10,'😀'||'''',\"NULL\"\n,2);"
    ).replace('"NULL"', "NULL")
    expected, _ = read(text)
    monkeypatch.setattr(d1_lexer, "_BLOCK", block)
    monkeypatch.setattr(d1_lexer, "_AHEAD", 40)
    assert read(text)[0] == expected
    assert values(expected) == [["a'日\\n", "a\nb", b"\x00\xff", -1.5e10, "😀'", None, 2]]


def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.sql"
    with path.open("w") as file:
        file.write(TWO)
        file.write(f"INSERT INTO fts_data VALUES(1,X'{'00' * 8_000_000}');\n")
        file.write("INSERT INTO doc_edges VALUES('a',1)" + f",('{'b' * 9_000}',2)" * 900 + ";\n")
        file.write(f"/* {'-' * 4_000_000} */")
    tracemalloc.start()
    with open_packed(path) as source:
        assert sum(1 for _ in D1Export(source)) == 901
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 25_000_000
    assert peak < 3_000_000
