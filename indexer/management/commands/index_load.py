"""manage.py index_load: load a snapshot into the index."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from indexer.conf import owner_url
from indexer.errors import IndexerError
from indexer.load import BATCH_ROWS, LoadReport, load_snapshot
from indexer.progress import progress_bar

# Exit code of a load that stored everything but some bad lines; 1 is a load that failed.
SOME_LINES_SKIPPED: Final = 3
SHOWN_BAD_LINES: Final = 20


class Command(BaseCommand):
    help = "Load a snapshot file (gzip or plain JSON Lines) into the index. Safe to run again."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("snapshot", type=Path, help="The snapshot file.")
        parser.add_argument(
            "--batch", type=int, default=BATCH_ROWS, help="Rows in one transaction."
        )

        parser.add_argument(
            "--replace",
            action="store_true",
            help="Empty the index first if it holds another source.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["snapshot"]
        if options["batch"] < 1:
            raise CommandError("--batch must be at least 1.")
        if not path.is_file():
            raise CommandError(f"There is no file {path}.")
        started = time.monotonic()
        self._bad = 0
        try:
            with progress_bar(f"Loading {path.name}", path.stat().st_size) as update:
                report = load_snapshot(
                    path,
                    owner_url(),
                    on_bad_line=self._bad_line,
                    on_progress=update,
                    batch_rows=options["batch"],
                    replace=options["replace"],
                )
        except IndexerError as error:
            raise CommandError(str(error)) from error
        self._say(report, time.monotonic() - started)
        if report.bad:
            raise CommandError(
                f"{report.bad} bad lines were skipped; everything else is stored.",
                returncode=SOME_LINES_SKIPPED,
            )

    def _bad_line(self, number: int, problem: str) -> None:
        self._bad += 1
        if self._bad <= SHOWN_BAD_LINES:
            self.stderr.write(f"line {number}: {problem}")
        elif self._bad == SHOWN_BAD_LINES + 1:
            self.stderr.write("… further bad lines are only counted")

    def _say(self, report: LoadReport, seconds: float) -> None:
        tally = report.tally
        rows = tally.inserted + tally.updated + tally.unchanged
        if report.emptied:
            self.stdout.write("The index held another source; it was emptied first.")
        if report.resumed_after:
            self.stdout.write(f"Went on after line {report.resumed_after} of an earlier load.")
        self.stdout.write(
            f"{rows:,} rows in {seconds:.1f} s ({rows / max(seconds, 0.001):,.0f} rows/s): "
            f"{tally.inserted:,} new, {tally.updated:,} changed, {tally.unchanged:,} as before; "
            f"{tally.edges:,} edges."
        )
        for kind, count in report.repairs.counts.items():
            self.stdout.write(f"{kind}: {count:,} times")
        if report.probe is None:
            self.stdout.write("No BM25 here: PostgreSQL's full-text search will answer.")
        elif report.probe.passed:
            self.stdout.write(f"BM25 is exact on {report.probe.queries} sampled queries.")
        else:
            self.stderr.write(
                "BM25 failed its exactness probe: PostgreSQL's full-text search will answer. "
                "Run manage.py check_index --mend."
            )
