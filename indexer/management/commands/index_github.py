"""manage.py index_github: index a repository on GitHub, or what is new in it."""

import time
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from indexer import embed
from indexer.conf import owner_url
from indexer.errors import IndexerError
from indexer.git import Repository
from indexer.github_client import configured
from indexer.github_report import GitHubReport
from indexer.github_sync import github_source, index_github
from indexer.progress import progress_bar

# A primary limit lasts an hour at most.
DEFAULT_MAX_WAIT_S: Final = 3_700
SHOWN_NAMES: Final = 10


class Command(BaseCommand):
    help = (
        "Index issues, pull requests, comments, reviews and releases of a repository on GitHub, "
        "and a clone of its wiki. Run it again for what is new."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("repo", help="owner/name. GITHUB_TOKEN is sent where it is set.")
        parser.add_argument("--wiki", type=Path, help="A clone of the wiki, bare or not.")
        parser.add_argument(
            "--full",
            action="store_true",
            help="Read everything again, and delete the rows of what is gone.",
        )
        parser.add_argument(
            "--max-wait",
            type=_seconds,
            default=DEFAULT_MAX_WAIT_S,
            help="How many seconds to wait for rate limits altogether (default: %(default)s).",
        )
        parser.add_argument(
            "--no-embed", action="store_true", help="Leave the vectors to index_embed --missing."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        try:
            wiki = Repository.at(options["wiki"]) if options["wiki"] else None
            url = owner_url()
            with (
                configured(max_wait=options["max_wait"], on_wait=self._waits) as github,
                progress_bar("Asking GitHub") as update,
            ):
                report = index_github(
                    github,
                    github_source(github, options["repo"]),
                    url,
                    embed.configured(),
                    embed=not options["no_embed"],
                    full=options["full"],
                    wiki=wiki,
                    on_progress=lambda what, position, total, rows: update(
                        position, rows, total, f"Indexing {what}"
                    ),
                )
        except IndexerError as error:
            raise CommandError(str(error)) from error
        self._say(report, time.monotonic() - started)
        self._say_notes(report, every=options["verbosity"] > 1)

    def _waits(self, seconds: float, reason: str) -> None:
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds))
        self.stderr.write(f"Waiting {seconds:,.0f} s, until {until}: {reason} of GitHub.")

    def _say(self, report: GitHubReport, seconds: float) -> None:
        tally = report.tally
        self.stdout.write(report.repo)
        if report.called != report.repo:
            self.stdout.write(
                f"GitHub calls it {report.called} now; its rows keep the name {report.repo}."
            )
        rows = tally.inserted + tally.updated
        self.stdout.write(
            f"{report.items:,} items read with {report.requests:,} requests ({report.unchanged:,} "
            f"answered 304) in {seconds:.1f} s ({rows / max(seconds, 0.001):,.1f} rows/s): "
            f"{tally.inserted:,} rows new, {tally.updated:,} changed, {tally.deleted:,} deleted."
        )
        if rows or tally.deleted:
            self.stdout.write(
                f"{report.embedded:,} texts embedded; {report.reused:,} rows took a vector that "
                "was there."
            )
        else:
            self.stdout.write("The index was up to date.")
        if report.probe is not None and not report.probe.passed:
            self.stderr.write(
                "BM25 failed its exactness probe: PostgreSQL's full-text search will answer. "
                "Run manage.py check_index --mend."
            )

    def _say_notes(self, report: GitHubReport, *, every: bool) -> None:
        """Say what was left out or is odd: how often, and of what."""
        for kind, noted in report.notes.kinds.items():
            names = list(noted.names) if every else list(noted.names)[:SHOWN_NAMES]
            more = noted.count - len(names)
            rest = f" and {more:,} more" if more else ""
            self.stdout.write(_shown(f"{kind}: {noted.count:,} ({', '.join(names)}{rest})"))
        for kind, count in report.repairs.counts.items():
            self.stdout.write(f"{kind}: {count:,} times")


def _shown(text: str) -> str:
    """Return a text for the terminal: names come from strangers."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds
