"""The test runner behind `manage.py test`: the same suite as `make test`, by pytest."""

import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.test.runner import DiscoverRunner


class PytestRunner(DiscoverRunner):
    """Hands the tests over to pytest, in a process of its own: Django is already set up here."""

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--pytest", default="", help="Further arguments for pytest.")

    def __init__(self, *, pytest: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._arguments = pytest.split()

    def run_tests(self, test_labels: Sequence[str], **options: Any) -> int:
        """Run pytest on the paths given, or on all tests; return 1 unless it passed."""
        flags = ["-x"] if self.failfast else []
        flags += ["--reuse-db"] if self.keepdb else []
        flags += ["-v"] if self.verbosity > 1 else []
        command = [sys.executable, "-m", "pytest", *flags, *self._arguments, *test_labels]
        environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
        return int(subprocess.run(command, env=environment, check=False).returncode != 0)
