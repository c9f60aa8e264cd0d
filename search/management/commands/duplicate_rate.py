"""`manage.py duplicate_rate --queries FILE`: what the collapse removes, measured on queries."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any, Final, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from search import services
from search.duplicates import Slots, after, before
from search.errors import SearchError
from search.serializers import ValidationError, messages_by_field, to_request
from search.table import printable

Measured = dict[str, tuple[Slots, Slots]]  # query → before, after
_TOTAL: Final = "total"


class Command(BaseCommand):
    help = "Count the distinct entities in the first rows of each query, before and after collapse."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queries", type=Path, required=True, help="A file in UTF-8 with one query a line."
        )
        parser.add_argument("--top-k", type=int, default=10, help="Places to look at (10).")
        parser.add_argument(
            "--fail-under",
            type=float,
            metavar="SHARE",
            help="Fail if a query has fewer distinct entities a place after the collapse: 0 to 1.",
        )
        parser.add_argument("--json", action="store_true", help="Print the figures as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        least = options["fail_under"]
        if least is not None and not 0 <= least <= 1:
            raise CommandError("--fail-under must be between 0 and 1.")
        measured = {
            query: self._measure(query, options["top_k"]) for query in _read(options["queries"])
        }
        total = (
            sum((one for one, _ in measured.values()), Slots(0, 0)),
            sum((one for _, one in measured.values()), Slots(0, 0)),
        )
        if options["json"]:
            self.stdout.write(_as_json(measured, total))
        else:
            _write(Console(file=cast(IO[str], self.stdout), highlight=False), measured, total)
        low = [
            printable(query)
            for query, (_, one) in measured.items()
            if least is not None and one.share is not None and one.share < least
        ]
        if low:
            raise CommandError(f"Below {least:g}: {'; '.join(low)}")

    def _measure(self, query: str, top_k: int) -> tuple[Slots, Slots]:
        try:
            result = services.search(request=to_request({"query": query, "top_k": top_k}))
        except ValidationError as error:
            [(name, messages), *_] = messages_by_field(error).items()
            raise CommandError(f"{name}: {messages[0]}") from error
        except SearchError as error:
            raise CommandError(str(error)) from error
        return before(result), after(result)


def _read(path: Path) -> list[str]:
    """Return the queries of a file, each once; raises CommandError."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--queries: {path} cannot be read: {error}") from error
    queries = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not queries:
        raise CommandError(f"--queries: {path} holds no query.")
    return queries


def _as_json(measured: Measured, total: tuple[Slots, Slots]) -> str:
    def figures(pair: tuple[Slots, Slots]) -> dict[str, Any]:
        names = ("before", "after")
        return {
            name: {"rows": one.places, "entities": one.distinct, "share": one.share}
            for name, one in zip(names, pair, strict=True)
        }

    queries = [{"query": query, **figures(pair)} for query, pair in measured.items()]
    return json.dumps({"queries": queries, _TOTAL: figures(total)}, ensure_ascii=False, indent=2)


def _write(console: Console, measured: Measured, total: tuple[Slots, Slots]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("query", overflow="fold")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    for query, pair in [*measured.items(), (_TOTAL, total)]:
        table.add_row(Text(printable(query)), *map(_fraction, pair))
    console.print(table)


def _fraction(slots: Slots) -> str:
    share = "–" if slots.share is None else f"{slots.share:.0%}"
    return f"{slots.distinct}/{slots.places} {share}"
