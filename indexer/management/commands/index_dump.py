"""manage.py index_dump: write the index to a snapshot file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from indexer.conf import owner_url
from indexer.dump import dump_snapshot
from indexer.errors import IndexerError
from indexer.progress import progress_bar


class Command(BaseCommand):
    help = "Write the whole index to a snapshot file, for index_load on another database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("snapshot", type=Path, help="The file to write, such as x.jsonl.gz.")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["snapshot"]
        try:
            with progress_bar(f"Writing {path.name}") as update:
                records = dump_snapshot(
                    owner_url(),
                    path,
                    on_progress=lambda done, total: update(done, done, total),
                )
        except IndexerError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            self.style.SUCCESS(f"{path}: {records:,} records, {path.stat().st_size:,} bytes.")
        )
