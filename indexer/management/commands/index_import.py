"""manage.py index_import: the data of a github-rag-mcp deployment into the index."""

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from indexer.conf import owner_url
from indexer.errors import IndexerError
from indexer.management.commands.index_load import SHOWN_BAD_LINES, SOME_LINES_SKIPPED
from indexer.progress import progress_bar
from indexer.reference_import import BATCH_ROWS, ImportReport, Missing, import_reference


class Command(BaseCommand):
    help = "Import a D1 export with Vectorize's vectors and the record store's records."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--d1",
            type=Path,
            nargs="+",
            required=True,
            metavar="FILE",
            help="SQL text of wrangler d1 export: one file, or one a table.",
        )
        parser.add_argument(
            "--vectors", type=Path, nargs="+", default=[], metavar="FILE", help="NDJSON of vectors."
        )
        parser.add_argument(
            "--records",
            type=Path,
            nargs="+",
            default=[],
            metavar="FILE",
            help="NDJSON or a JSON array of the record store's rows.",
        )
        parser.add_argument("--model", required=True, help="The model that made the vectors.")
        parser.add_argument(
            "--dimensions", type=int, help="Of the vectors (default: that of the first)."
        )
        parser.add_argument(
            "--batch", type=int, default=BATCH_ROWS, help="Rows in one transaction."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._check(options)
        started = time.monotonic()
        self._bad = 0
        try:
            with progress_bar("Reading") as update:
                report = import_reference(
                    owner_url(),
                    exports=options["d1"],
                    vectors=options["vectors"],
                    record_files=options["records"],
                    model=options["model"],
                    dimensions=options["dimensions"],
                    on_bad_line=self._bad_line,
                    on_progress=lambda what, position, total, rows: update(
                        position, rows, total, what
                    ),
                    batch_rows=options["batch"],
                )
        except IndexerError as error:
            raise CommandError(str(error)) from error
        self._say(report, time.monotonic() - started)
        self._say_what_is_missing(report)
        if report.bad:
            raise CommandError(
                f"{report.bad} bad lines were skipped; everything else is stored.",
                returncode=SOME_LINES_SKIPPED,
            )

    def _check(self, options: dict[str, Any]) -> None:
        for name in ("batch", "dimensions"):
            if options[name] is not None and options[name] < 1:
                raise CommandError(f"--{name} must be at least 1.")
        if not options["model"].strip():
            raise CommandError("--model must name the model that made the vectors.")
        for path in (*options["d1"], *options["vectors"], *options["records"]):
            if not path.is_file():
                raise CommandError(f"There is no file {path}.")

    def _bad_line(self, file: str, number: int, problem: str) -> None:
        self._bad += 1
        if self._bad <= SHOWN_BAD_LINES:
            self.stderr.write(_plain(f"{file} line {number}: {problem}"))
        elif self._bad == SHOWN_BAD_LINES + 1:
            self.stderr.write("… further bad lines are only counted")

    def _say(self, report: ImportReport, seconds: float) -> None:
        tally = report.tally
        rows = tally.inserted + tally.updated + tally.unchanged
        self.stdout.write(
            f"{report.vectors:,} vectors of {report.dimensions} dimensions and {report.records:,} "
            "records read."
        )
        self.stdout.write(
            f"{rows:,} rows in {seconds:.1f} s ({rows / max(seconds, 0.001):,.0f} rows/s): "
            f"{tally.inserted:,} new, {tally.updated:,} changed, {tally.unchanged:,} as before; "
            f"{tally.edges:,} edges."
        )
        if report.probe is None:
            self.stdout.write("No BM25 here: PostgreSQL's full-text search will answer.")
        elif report.probe.passed:
            self.stdout.write(f"BM25 is exact on {report.probe.queries} sampled queries.")
        else:
            self.stderr.write(
                "BM25 failed its exactness probe: PostgreSQL's full-text search will answer. "
                "Run manage.py check_index --mend."
            )

    def _say_what_is_missing(self, report: ImportReport) -> None:
        for what, missing in (
            ("rows have no vector (index_embed --missing makes them)", report.rows_without_vector),
            ("rows have no time of creation", report.rows_without_creation),
            ("vectors have no row: left out", report.vectors_without_row),
            ("records have no row: left out", report.records_without_row),
        ):
            self._say_missing(what, missing)
        for kind, count in report.repairs.counts.items():
            self.stdout.write(f"{kind}: {count:,} times")
        for name, count in report.no_column.most_common():
            self.stdout.write(_plain(f"no column for {name}: {count:,} values left out"))
        if report.ignored:
            counts = ", ".join(f"{name} {n:,}" for name, n in report.ignored.most_common(20))
            self.stdout.write(_plain(f"Statements passed over: {counts}"))

    def _say_missing(self, what: str, missing: Missing) -> None:
        if missing.count:
            more = ", …" if missing.count > len(missing.examples) else ""
            ids = ", ".join(missing.examples)
            self.stdout.write(_plain(f"{missing.count:,} {what}: {ids}{more}"))


def _plain(text: str) -> str:
    """Return a line without what a stranger's file may tell the terminal to do."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
