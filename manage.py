#!/usr/bin/env python
"""Command-line entry point of the project."""

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the management command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", _settings())
    # Being told to end runs the exit handlers too: the embedded server's last user stops it.
    signal.signal(signal.SIGTERM, _exit)
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from ragsite.databases import provide_embedded

    try:
        provide_embedded(sys.argv)
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # the message says it all
        sys.exit(str(error))


def _settings() -> str:
    return "tests.settings" if sys.argv[1:2] == ["test"] else "ragsite.settings"


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
