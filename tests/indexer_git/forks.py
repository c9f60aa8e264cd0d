"""Commands in processes that can be killed: each is a fork of a process that has imported all.

Run as a module it reads a command a line, as JSON, and writes first its process id, then how it
ended. The pytest process itself has threads, and must not fork.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

FOLDER = Path(__file__).resolve().parents[2]


class Forks:
    """The parent of the processes; use it as a context manager."""

    def __init__(self, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=FOLDER,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate(timeout=30)

    def start(self, *command: str) -> int:
        """Start a management command and return its process id."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._read())

    def ended(self) -> int:
        """Wait for the end of the command and return its exit code, negative for a signal."""
        return int(self._read())

    def run(self, *command: str) -> None:
        self.start(*command)
        assert self.ended() == 0

    def _read(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


def kill(process: int) -> None:
    """Kill a process, if it has not just ended."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _serve() -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.core.management.base import CommandError

    from indexer.management.commands import index_dump, index_embed, index_git  # noqa: F401

    def run(command: list[Any]) -> None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        try:
            call_command(*command)
        except CommandError as error:
            sys.stderr.write(f"{error}\n")
            os._exit(1)
        os._exit(0)

    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        if not (process := os.fork()):
            run(json.loads(line))
        print(process, flush=True)  # noqa: T201
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    _serve()
