"""manage.py index_init: create the tables, indexes, roles and grants of an index."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from indexer import store
from indexer.conf import owner_url
from indexer.errors import IndexerError


class Command(BaseCommand):
    help = "Create the tables, indexes, roles and grants of an index. Safe to run again."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dimensions", type=int, default=384, help="Numbers in each vector (default 384)."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            store.init_schema(owner_url(), dimensions=options["dimensions"])
        except IndexerError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(self.style.SUCCESS("The index is ready to be loaded."))
