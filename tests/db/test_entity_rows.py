"""All rows of an entity, and single rows: which rows, in which order, by which keys."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from search import entity_rows
from search.entities import entity_key
from search.entity_rows import MAX_LIMIT
from search.errors import IndexUnavailable, InvalidRequest, NotFound
from search.types import ROW_TYPES
from tests.postgres import TestIndex, row

NEVER = datetime.min.replace(tzinfo=UTC)


def walk(key: str, limit: int) -> list[str]:
    """Ids of all rows of an entity, page by page."""
    ids: list[str] = []
    cursor = None
    while True:
        page = entity_rows.entity_rows(key=key, cursor=cursor, limit=limit)
        assert page.key == key
        assert 0 < len(page.rows) <= limit
        assert {scanned.entity_key for scanned in page.rows} == {key}
        ids += [scanned.row.vector_id for scanned in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            return ids


def mixed_rows() -> list[dict[str, Any]]:
    """Rows of every type that share repositories, numbers and paths, often at equal times."""
    return [
        row(
            f"{type_}:{repo}:{number}:{n}",
            type=type_,
            repo=f"acme/{repo}",
            number=number,
            doc_path="a:b/ü.md" if n % 2 else "",
            file_path="a:b/ü.md" if n % 3 else "",
            updated_at=f"2026-01-0{n % 3 + 1}T00:00:00Z" if n % 4 else None,
        )
        for type_ in ROW_TYPES
        for repo in ("app", "web")
        for number in (0, 7)
        for n in range(6)
    ]


def expected(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Entity key → ids, newest first, rows without a time last, ties by id."""
    groups = defaultdict(list)
    for one in rows:
        fields = ("vector_id", "repo", "type", "number", "doc_path", "file_path")
        groups[entity_key(**{name: one[name] for name in fields})].append(one)
    for group in groups.values():
        group.sort(key=lambda one: one["vector_id"])
        group.sort(key=lambda one: one["updated_at"] or NEVER, reverse=True)
    return {key: [one["vector_id"] for one in group] for key, group in groups.items()}


def test_each_key_gives_exactly_its_rows_in_time_order_whatever_the_page(index: TestIndex) -> None:
    rows = mixed_rows()
    index.load(rows)
    groups = expected(rows)
    assert {len(ids) for ids in groups.values()} == {1, 14, 30}

    @settings(max_examples=60, deadline=None)
    @given(st.sampled_from(sorted(groups)), st.integers(1, 12))
    def check(key: str, limit: int) -> None:
        assert walk(key, limit) == groups[key]

    check()


def test_a_walk_goes_on_where_it_stood_whatever_is_written_meanwhile(index: TestIndex) -> None:
    def comment(name: str, day: int) -> dict[str, Any]:
        return row(
            f"ic:{name}", type="issue_comment", number=7, updated_at=f"2026-01-{day:02}T00:00:00Z"
        )

    index.load([comment(str(day), day) for day in (1, 2, 3, 4)])
    key = "thread:acme/app:7"
    first = entity_rows.entity_rows(key=key, limit=2)
    index.load([comment("new", 9), comment("between", 2)], deleted=["ic:3"])
    rest = entity_rows.entity_rows(key=key, cursor=first.next_cursor)
    assert [scanned.row.vector_id for scanned in rest.rows] == ["ic:2", "ic:between", "ic:1"]


@pytest.mark.parametrize(
    "key",
    [
        "", "file", "file:", "file:acme/app", "file:acme/app:", "file:app:README.md",
        "thread:acme/app:", "thread:acme/app:0", "thread:acme/app:07", "thread:acme/app:7x",
        "thread:acme/app:٧", "thread:acme/app:-1", "thread:acme/app:9999999999", "row:",
        "diff:acme/app:a", "file:acme/app:a\0b", "row:\ud800", " row:1",
    ],
)  # fmt: skip
def test_a_key_of_no_known_form_is_refused(index: TestIndex, key: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        entity_rows.entity_rows(key=key)
    assert caught.value.field == "key"
    assert str(caught.value).encode()


@pytest.mark.parametrize("limit", [0, -1, MAX_LIMIT + 1])
def test_a_limit_out_of_range_is_refused(index: TestIndex, limit: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        entity_rows.entity_rows(key="row:1", limit=limit)
    assert caught.value.field == "limit"


def test_a_cursor_of_another_entity_or_altered_is_refused(index: TestIndex) -> None:
    index.load([row(f"ic:{n}", type="issue_comment", number=n % 2 + 1) for n in range(6)])
    cursor = entity_rows.entity_rows(key="thread:acme/app:1", limit=1).next_cursor
    assert cursor is not None
    wrong = [("thread:acme/app:2", cursor), ("thread:acme/app:1", cursor[:-1] + "é")]
    wrong += [("thread:acme/app:1", text) for text in ("", "x", cursor[1:], cursor + "A")]
    for key, text in wrong:
        with pytest.raises(InvalidRequest) as caught:
            entity_rows.entity_rows(key=key, cursor=text)
        assert caught.value.field == "cursor"


def test_what_the_index_does_not_hold_is_not_found(index: TestIndex) -> None:
    index.load([row("d:1", type="doc", doc_path="README.md"), row("w:1", type="wiki_doc")])
    for key in ("file:acme/app:LICENSE", "file:acme/web:README.md", "thread:acme/app:1", "row:x"):
        with pytest.raises(NotFound):
            entity_rows.entity_rows(key=key)
    # The row exists, but it is a row of the file.
    with pytest.raises(NotFound):
        entity_rows.entity_rows(key="row:d:1")
    with pytest.raises(NotFound):
        entity_rows.row(vector_id="d:2")


def test_a_row_comes_with_its_whole_text(index: TestIndex) -> None:
    index.load([row("i:1", number=1, title="T", content="x" * 5_000)])
    found = entity_rows.row(vector_id="i:1")
    assert (found.entity_key, found.title, found.content) == ("thread:acme/app:1", "T", "x" * 5_000)


def test_an_empty_index_is_no_missing_row(index: TestIndex) -> None:
    with pytest.raises(IndexUnavailable):
        entity_rows.row(vector_id="i:1")
    with pytest.raises(IndexUnavailable):
        entity_rows.entity_rows(key="row:1")


@pytest.mark.parametrize(
    ("key", "indexes"),
    [
        ("thread:acme/app:7", {"search_docs_thread"}),
        ("file:acme/app:src/7.py", {"search_docs_doc_path", "search_docs_file_path"}),
        ("row:c:7", {"search_docs_pkey"}),
    ],
)
def test_each_form_of_key_is_answered_by_an_index(
    index: TestIndex, key: str, indexes: set[str]
) -> None:
    docs = [row(f"d:{n}", type="doc", doc_path=f"src/{n}.py") for n in range(300)]
    diffs = [row(f"c:{n}", type="diff", file_path=f"src/{n}.py") for n in range(300)]
    issues = [row(f"i:{n}", number=n + 1) for n in range(300)]
    index.load([*docs, *diffs, *issues, row("c:7", type="diff")])
    index.execute("ANALYZE search_docs")
    with CaptureQueriesContext(connections["index"]) as queries:
        entity_rows.entity_rows(key=key)
    [statement] = [q["sql"] for q in queries if "LIMIT" in q["sql"] and "CASE" in q["sql"]]
    with psycopg.connect(index.owner_url) as connection:
        plan = str(connection.execute(f"EXPLAIN {statement}").fetchall())
    assert "Seq Scan" not in plan
    assert all(name in plan for name in indexes), plan
