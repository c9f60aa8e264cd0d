"""kill -9 in the middle of an import, then the same command again: as if nothing had been."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.indexer_import.generator import Files, make
from tests.postgres import BASE_DIR, MODEL, TestIndex

KILLS = 10
# The command alone, without the application's settings: a dozen processes start faster.
PROGRAM = """
import sys, django
from django.conf import settings
from django.core.management import call_command
settings.configure(INSTALLED_APPS=["indexer"])
django.setup()
call_command("index_import", *sys.argv[1:])
"""


def start(index: TestIndex, files: Files) -> subprocess.Popen[bytes]:
    arguments = ["--d1", files.d1, "--vectors", files.vectors, "--records", files.records]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments), "--model", MODEL,
         "--batch", "5"],
        cwd=BASE_DIR,
        env={**os.environ, "INDEX_OWNER_URL": index.owner_url, "PYTHONPATH": "."},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[bytes]) -> None:
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()


def count(connection: psycopg.Connection) -> int:
    return connection.execute("SELECT count(*) FROM search_docs").fetchone()[0]  # type: ignore[index]


def content(index: TestIndex) -> list[list[tuple[object, ...]]]:
    """All that an index says, but for when it was written."""
    rows = index.execute("SELECT * FROM search_docs ORDER BY vector_id")
    (columns,) = index.execute(
        "SELECT array_agg(column_name::text ORDER BY ordinal_position)"
        " FROM information_schema.columns WHERE table_name = 'search_docs'"
    )[0]
    position = columns.index("indexed_at")
    return [
        [row[:position] + row[position + 1 :] for row in rows],
        index.execute("SELECT * FROM doc_edges ORDER BY 1, 2"),
        index.execute("SELECT embedding_model, dimensions, source FROM index_info"),
        index.execute("SELECT lexical_probe->'passed' FROM index_info"),
        index.execute("SELECT field, lexeme, documents FROM term_frequencies ORDER BY 1, 2"),
        index.execute("SELECT key FROM indexer_state"),
        index.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1"),
    ]


def test_an_import_that_is_killed_ten_times_ends_as_one_that_is_not(
    make_index: Callable[[], TestIndex], sample_path: Path, tmp_path: Path
) -> None:
    files = make(sample_path, tmp_path)
    undisturbed, killed = make_index(), make_index()
    finish(start(undisturbed, files))
    chooser = random.Random(5)
    total = len(content(undisturbed)[0])
    with psycopg.connect(killed.owner_url, autocommit=True) as watching:
        before, met_writing = 0, 0
        for n in range(KILLS):
            process = start(killed, files)
            # Some die while vectors are read, most between or within batches: the further ones
            # get past the rows that their predecessors left.
            while n % 5 and process.poll() is None and count(watching) <= before:
                time.sleep(0.02)
            time.sleep(chooser.uniform(0, 0.12))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            met_writing += before < count(watching) < total
            before = count(watching)
    finish(start(killed, files))
    assert met_writing >= 2
    assert content(killed) == content(undisturbed)
