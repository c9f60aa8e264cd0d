"""manage.py check_index: probe the BM25 index for exactness, and mend it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from indexer import lexical, store
from indexer.conf import owner_url
from indexer.errors import IndexerError


class Command(BaseCommand):
    help = "Compare BM25's index scan with exact scoring, and record the outcome for the search."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queries", type=int, default=30, help="Sampled queries per field (default 30)."
        )
        parser.add_argument(
            "--mend",
            action="store_true",
            help="Rewrite the table first (VACUUM FULL; searches wait meanwhile).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["queries"] < 1:
            raise CommandError("--queries must be at least 1.")
        try:
            with store.connect(owner_url()) as connection:
                if options["mend"]:
                    lexical.settle(connection, moved=True, added=False)
                outcome = lexical.probe_and_record(connection, queries=options["queries"])
        except IndexerError as error:
            raise CommandError(str(error)) from error
        if outcome is None:
            self.stdout.write(
                "This database has no pg_textsearch: PostgreSQL's full-text search answers."
            )
            return
        self.stdout.write(
            f"pg_textsearch {outcome.pg_textsearch}: {outcome.queries - outcome.failed} of "
            f"{outcome.queries} sampled queries are exact; the worst found "
            f"{outcome.worst_recall:.0%} of the rows that lead."
        )
        if not outcome.passed:
            raise CommandError(
                "The BM25 index is damaged; until it is mended the search answers from "
                "PostgreSQL's full-text search. To mend it: manage.py check_index --mend"
            )
        self.stdout.write(self.style.SUCCESS("BM25 can be trusted."))
