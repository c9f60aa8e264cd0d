"""The index is never changed by the application, whatever code asks for it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, connections, transaction
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.test import Client

from ingest_readonly.errors import ReadOnlyIndex
from ingest_readonly.models import MIRRORED, DocEdge, IndexInfo, SearchDoc
from tests.postgres import TestIndex, row

DENIED = (DatabaseError, ReadOnlyIndex)
ROW = row("i:1", number=1, title="A title", content="Some content", embedding=[1.0])


FIELDS = SearchDoc._meta.concrete_fields

# Each writes through a different door. Those that name a database get past the router, so what
# refuses them is the database.
AT_THE_DATABASE: dict[str, Callable[[], Any]] = {
    "raw insert": lambda: sql(
        "INSERT INTO search_docs (vector_id, repo, type) VALUES ('a','b','c')"
    ),
    "raw update": lambda: sql("UPDATE search_docs SET title = 'x'"),
    "raw delete": lambda: sql("DELETE FROM search_docs"),
    "raw truncate": lambda: sql("TRUNCATE search_docs"),
    "raw drop": lambda: sql("DROP TABLE search_docs"),
    "raw create": lambda: sql("CREATE TABLE mine (id integer)"),
    "raw temporary": lambda: sql("CREATE TEMPORARY TABLE mine (id integer)"),
    "read-only switched off": lambda: sql(
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE; SET transaction_read_only = off;"
        "UPDATE search_docs SET title = 'x'"
    ),
    "role of the owner": lambda: sql("SET ROLE rag_owner; UPDATE search_docs SET title = 'x'"),
    "using().filter().update()": lambda: SearchDoc.objects.using("index").update(title="x"),
    "using().filter().delete()": lambda: (
        SearchDoc.objects.using("index").all()._raw_delete("index")
    ),
    "using().bulk_create()": lambda: SearchDoc.objects.using("index").bulk_create(
        [SearchDoc(**{**vars_of(), "vector_id": "i:2"})]
    ),
    "save_base(using)": lambda: SearchDoc.objects.get().save_base(using="index", force_update=True),
    "select for update": lambda: lock_rows(),
}
AT_THE_ROUTER: dict[str, Callable[[], Any]] = {
    "save()": lambda: SearchDoc.objects.get().save(),
    "save(using)": lambda: SearchDoc.objects.get().save(using="index"),
    "delete()": lambda: SearchDoc.objects.get().delete(),
    "delete(using)": lambda: SearchDoc.objects.get().delete(using="index"),
    "create()": lambda: SearchDoc.objects.create(**{**vars_of(), "vector_id": "i:2"}),
    "filter().update()": lambda: SearchDoc.objects.filter(number=1).update(title="x"),
    "filter().delete()": lambda: SearchDoc.objects.filter(number=1).delete(),
    "bulk_create()": lambda: SearchDoc.objects.bulk_create([SearchDoc(**vars_of())]),
    "bulk_update()": lambda: SearchDoc.objects.bulk_update([SearchDoc.objects.get()], ["title"]),
    "get_or_create()": lambda: SearchDoc.objects.get_or_create(vector_id="i:2"),
}


def sql(statement: str) -> None:
    with transaction.atomic(using="index"), connections["index"].cursor() as cursor:
        cursor.execute(statement)


def lock_rows() -> None:
    with transaction.atomic(using="index"):
        list(SearchDoc.objects.using("index").select_for_update())


def vars_of() -> dict[str, Any]:
    doc = SearchDoc.objects.get()
    return {f.attname: getattr(doc, f.attname) for f in FIELDS}


@pytest.fixture
def loaded(index: TestIndex) -> TestIndex:
    index.load([ROW])
    return index


def everything(index: TestIndex) -> list[tuple[Any, ...]]:
    return index.execute("SELECT * FROM search_docs ORDER BY vector_id")


@pytest.mark.parametrize("door", AT_THE_DATABASE)
def test_it_refuses_writes_at_the_database(loaded: TestIndex, door: str) -> None:
    before = everything(loaded)
    with pytest.raises(DatabaseError, match=r"read-only|permission denied|must be owner"):
        AT_THE_DATABASE[door]()
    assert everything(loaded) == before


@pytest.mark.parametrize("door", AT_THE_ROUTER)
def test_it_refuses_writes_at_the_router(loaded: TestIndex, door: str) -> None:
    before = everything(loaded)
    with pytest.raises(DENIED):
        AT_THE_ROUTER[door]()
    assert everything(loaded) == before


@pytest.mark.parametrize("action", ["add/", "i:1/change/", "i:1/delete/", ""])
@pytest.mark.parametrize("model", [m._meta.model_name for m in MIRRORED])
def test_it_refuses_posts_in_the_admin(
    loaded: TestIndex, admin_client: Client, model: str, action: str
) -> None:
    before = everything(loaded)
    data = {"title": "x", "action": "delete_selected", "_selected_action": "i:1", "post": "yes"}
    response = admin_client.post(f"/admin/ingest_readonly/{model}/{action}", data)
    assert response.status_code == 403
    assert everything(loaded) == before


def test_it_mirrors_every_column_of_the_contract(index: TestIndex) -> None:
    written = row(
        "c:1", type="diff", repo="acme/app", state="active", labels=["bug", "日本語"],
        milestone="v1", assignees=["ann"], created_at="2026-01-02T03:04:05+09:00",
        updated_at="2026-02-03T04:05:06Z", number=7, tag_name="v1.0", doc_path="docs/a b.md",
        wiki_extension=".md", commit_sha="45deef8", file_path="src/設計.py", file_status="modified",
        commit_date="2026-01-02T03:04:05Z", commit_author="bo", author="cy", comment_id=2**40,
        review_id=2**41, line=12, title="45deef8 src/設計.py", content="a → b\n",
        embedding=[0.5, -0.25],
    )  # fmt: skip
    index.load([written])
    read = SearchDoc.objects.get()
    expected = {**written, "embedding": [0.5, -0.25, *[0.0] * 382]}
    for name, value in expected.items():
        found = getattr(read, name)
        assert found == value, name
    assert set(expected) | {"indexed_at"} == {f.name for f in FIELDS}
    assert read.indexed_at is not None


def test_it_mirrors_edges_and_info(index: TestIndex) -> None:
    edge = {
        "src_vector_id": "w:1", "dst_vector_id": "w:gone", "repo": "acme/app", "src_slug": "Home",
        "dst_slug": "Gone", "edge_kind": "mention", "updated_at": None,
    }  # fmt: skip
    index.load([ROW], [edge])
    read = DocEdge.objects.get()
    assert {name: getattr(read, name) for name in edge} == edge
    info = IndexInfo.objects.get()
    assert (info.contract_version, info.dimensions, info.source) == (1, 384, "tests")
    assert info.lexical_probe is None or info.lexical_probe["passed"] is True


def test_no_migration_touches_the_index(index: TestIndex) -> None:
    before = index.execute("SELECT relname FROM pg_class ORDER BY relname")
    with pytest.raises(MigrationSchemaMissing, match="read-only transaction"):
        call_command("migrate", database="index", verbosity=0, interactive=False)
    after = index.execute("SELECT relname FROM pg_class ORDER BY relname")
    assert after == before


def test_every_model_of_the_mirror_is_unmanaged() -> None:
    models = list(apps.get_app_config("ingest_readonly").get_models())
    assert len(models) == len(MIRRORED)
    assert not any(model._meta.managed for model in models)
