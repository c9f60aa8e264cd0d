"""kill -9 in the middle of a load, ten times, then again to the end: as if nothing had been."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.indexer_import.test_killed import content
from tests.postgres import BASE_DIR, TestIndex

KILLS = 10
PROGRAM = """
import sys, django
from django.conf import settings
from django.core.management import call_command
settings.configure(INSTALLED_APPS=["indexer"])
django.setup()
call_command("index_load", sys.argv[1], batch=10)
"""


def start(index: TestIndex, snapshot: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(snapshot)],
        cwd=BASE_DIR,
        env={**os.environ, "INDEX_OWNER_URL": index.owner_url, "PYTHONPATH": "."},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def rows(index: TestIndex) -> int:
    return int(index.execute("SELECT count(*) FROM search_docs")[0][0])


def test_a_load_that_is_killed_ten_times_ends_as_one_that_is_not(
    make_index: Callable[[], TestIndex], sample_path: Path
) -> None:
    undisturbed, killed = make_index(), make_index()
    for index, kills in ((undisturbed, 0), (killed, KILLS)):
        chooser = random.Random(4)
        in_the_middle = 0
        for _ in range(kills):
            process = start(index, sample_path)
            before, goal = rows(index), chooser.randint(0, 40)
            while process.poll() is None and rows(index) < before + goal:
                time.sleep(0.002)
            time.sleep(chooser.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            in_the_middle += 0 < rows(index) < 305
        assert in_the_middle >= kills // 2
        process = start(index, sample_path)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error.decode()
    assert content(killed) == content(undisturbed)
