#!/usr/bin/env python
"""Command-line entry point of the project."""

import os
import sys


def main() -> None:
    """Run the management command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    # After the line above: importing Django's commands reads the settings.
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    from ragsite.databases import provide_embedded  # noqa: PLC0415

    provide_embedded(sys.argv)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
