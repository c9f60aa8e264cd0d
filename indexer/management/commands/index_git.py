"""manage.py index_git: index a git repository, or what is new in it."""

import time
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from indexer import embed, store
from indexer.conf import owner_url
from indexer.errors import IndexerError
from indexer.git_index import GitReport, index_git
from indexer.git_source import git_source
from indexer.progress import progress_bar


class Command(BaseCommand):
    help = "Index the documents and the history of a git repository. Run it again for what is new."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="A clone, bare or not.")
        parser.add_argument(
            "--repo", help="owner/name of the rows (default: GitHub's, else local/<folder>)."
        )
        parser.add_argument("--branch", help="The branch (default: the one that is checked out).")
        parser.add_argument(
            "--since", type=_time, help="Make no diff rows of commits before this day or time."
        )
        parser.add_argument(
            "--max-commits", type=_positive, help="Make diff rows of the newest commits only."
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="Empty the index first if it holds anything else.",
        )
        parser.add_argument(
            "--no-embed", action="store_true", help="Leave the vectors to index_embed --missing."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        try:
            source = git_source(
                options["path"],
                repo=options["repo"],
                branch=options["branch"],
                since=options["since"],
                max_commits=options["max_commits"],
            )
            if options["replace"] and store.clear(owner_url(), unless_source=source.about):
                self.stdout.write("The index held another source; it was emptied first.")
            with progress_bar("Reading") as update:
                report = index_git(
                    source,
                    owner_url(),
                    embed.configured(),
                    embed=not options["no_embed"],
                    on_progress=lambda what, position, total, rows: update(
                        position, rows, total, f"Indexing {what}"
                    ),
                )
        except IndexerError as error:
            raise CommandError(str(error)) from error
        self._say(report, time.monotonic() - started)

    def _say(self, report: GitReport, seconds: float) -> None:
        source, tally = report.source, report.tally
        self.stdout.write(f"{source.repo}, branch {source.branch}, commit {source.tip}")
        rows = tally.inserted + tally.updated
        if not rows and not tally.deleted:
            self.stdout.write("The index was up to date.")
            return
        self.stdout.write(
            f"{report.commits:,} commits and {report.documents:,} documents read in {seconds:.1f} "
            f"s ({rows / max(seconds, 0.001):,.1f} rows/s): {tally.inserted:,} rows new, "
            f"{tally.updated:,} changed, {tally.deleted:,} deleted."
        )
        self.stdout.write(
            f"{report.embedded:,} texts embedded; {report.reused:,} rows took a vector that was "
            "there."
        )
        for kind, count in report.repairs.counts.items():
            self.stdout.write(f"{kind}: {count:,} times")
        if report.probe is not None and not report.probe.passed:
            self.stderr.write(
                "BM25 failed its exactness probe: PostgreSQL's full-text search will answer. "
                "Run manage.py check_index --mend."
            )


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no day or time such as 2024-12-31") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)
