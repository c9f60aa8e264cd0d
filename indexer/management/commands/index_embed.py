"""manage.py index_embed: give rows their vectors."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from indexer import embed
from indexer.conf import owner_url
from indexer.errors import IndexerError
from indexer.progress import progress_bar


class Command(BaseCommand):
    help = "Embed rows with the search's embedding backend (SEARCH_EMBEDDER). Safe to run again."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--missing",
            action="store_true",
            required=True,
            help="The rows without a vector; those that have one keep it.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        try:
            url = owner_url()
            with progress_bar("Embedding", embed.count_missing(url)) as update:
                report = embed.embed_missing(url, embed.configured(), on_progress=update)
        except IndexerError as error:
            raise CommandError(str(error)) from error
        seconds = time.monotonic() - started
        self.stdout.write(
            f"{report.embedded:,} texts embedded in {seconds:.1f} s "
            f"({report.embedded / max(seconds, 0.001):,.1f} a second); {report.reused:,} rows took "
            f"the vector of the same text; {report.blank:,} have no text."
        )
