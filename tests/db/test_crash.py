"""kill -9 of PostgreSQL right after a load: every row is still found by its words."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connections
from django.test.utils import override_settings

from indexer import store
from ragsite import embedded
from search.services import search
from search.types import SearchRequest
from tests import postgres
from tests.postgres import DIMENSIONS, MODEL, row

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("TEST_POSTGRES_URL")), reason="the server is not ours to kill"
)
ROWS = 120


@pytest.fixture
def server(tmp_path: Path) -> Iterator[embedded.Server]:
    """A server of this test's own, safe from crashes, with an empty index."""
    running = embedded.ensure_running(tmp_path / "pg")
    with psycopg.connect(running.superuser_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE crash")
    store.init_schema(running.url("crash", "postgres"), dimensions=DIMENSIONS)
    yield running
    embedded.stop(tmp_path / "pg")


def load(server: embedded.Server) -> None:
    writer = store.Writer(
        server.url("crash", "rag_owner"), embedding_model=MODEL, dimensions=DIMENSIONS, source="t"
    )
    with writer:
        for start in range(0, ROWS, 40):
            writer.store(
                [
                    row(f"i:{n}", number=n + 1, title=f"Title{n}", content=f"lonely{n} common")
                    for n in range(start, start + 40)
                ]
            )
        writer.finish()


def kill(server: embedded.Server) -> None:
    """End the postmaster as a power cut would, and wait until it is gone."""
    pid = int((server.data_dir / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGKILL)
    while True:
        try:
            psycopg.connect(server.superuser_url).close()
        except psycopg.OperationalError:
            return


def point_at(server: embedded.Server) -> None:
    connection = connections["index"]
    connection.close()
    connection.close_pool()
    url = psycopg.conninfo.conninfo_to_dict(server.url("crash", "rag_reader"))
    connection.settings_dict.update(
        NAME="crash", USER="rag_reader", HOST=url["host"], PORT=str(url["port"])
    )


@pytest.mark.bm25
def test_every_row_of_the_last_batch_is_found_after_kill_9(
    server: embedded.Server, index: postgres.TestIndex
) -> None:
    load(server)
    before = answers(server)
    kill(server)
    server = embedded.ensure_running(server.data_dir)
    assert answers(server) == before
    assert before == [([f"i:{n}"], "bm25") for n in range(ROWS)]


def answers(server: embedded.Server) -> list[tuple[list[str], str]]:
    """For each row, what a search for its own word finds, and with which engine."""
    point_at(server)
    found = []
    with override_settings(SEARCH_EMBEDDER="tests.embedders.FirstAxis"):
        for n in range(ROWS):
            result = search(request=SearchRequest(f"lonely{n}", fusion="sparse_only"))
            engine = result.trace.engines["sparse"]
            found.append(([hit.row.vector_id for hit in result.hits], engine))
    return found
