"""An answer as a table for a terminal.

Titles and names are strangers' text: nothing in them is taken for markup or for control codes.
"""

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from search.types import Hit, Neighbour, Row, ScannedRow, ScanResult, SearchResult

_COLUMNS: Final = ("#", "score", "type", "title", "repo", "updated", "folded")
_NUMBERS: Final = frozenset({"#", "score", "folded"})


def write(console: Console, answer: SearchResult | ScanResult) -> None:
    """Print the results and, below them, what the answer says about itself."""
    found: Iterable[tuple[str, ...]]
    if isinstance(answer, ScanResult):
        found = [
            (str(place), "", *_of_row(one.row, one.title), "")
            for place, one in enumerate(answer.rows, 1)
        ]
        notes = _notes_of_scan(answer)
    else:
        found = [_of_result(place, shown) for place, shown in enumerate(answer.shown, 1)]
        notes = _notes_of_search(answer)
    table = Table(box=None, pad_edge=False)
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in _NUMBERS else "left", overflow="fold")
    for cells in found:
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    for title, text in _texts(answer):
        console.rule(Text(printable(title)), align="left")
        console.print(Text("\n".join(map(printable, text.expandtabs(4).splitlines()))))
    for note in notes:
        console.print(Text(printable(note)), soft_wrap=True)  # a token is copied in one piece


def printable(text: str) -> str:
    """Return `text` on one line, with `·` for what is not printed: control codes, for one."""
    return "".join(c if c.isprintable() else "·" for c in text)


def _texts(answer: SearchResult | ScanResult) -> list[tuple[str, str]]:
    """Return title and content of what was shown with its content."""
    shown: Iterable[Hit | Neighbour | ScannedRow]
    shown = answer.rows if isinstance(answer, ScanResult) else answer.shown
    return [(one.title, one.content) for one in shown if one.content is not None]


def _of_result(place: int, shown: Hit | Neighbour) -> tuple[str, ...]:
    neighbour = isinstance(shown, Neighbour)
    score = f"hop {shown.hop}" if isinstance(shown, Neighbour) else f"{shown.ranked.score:.4f}"
    folded = f"+{len(shown.others)}" if shown.others else ""
    return ("→" if neighbour else str(place), score, *_of_row(shown.row, shown.title), folded)


def _of_row(row: Row, title: str) -> tuple[str, str, str, str]:
    updated = f"{row.updated_at:%Y-%m-%d %H:%M}" if row.updated_at else ""
    return row.type, title, row.repo, updated


def _notes_of_search(result: SearchResult) -> list[str]:
    rows = min(result.request.top_k, len(result.trace.pool))
    notes = [
        f"{len(result.hits)} results; the first {rows} rows were {result.trace.slot_entities} "
        f"distinct things. {result.trace.timings_ms.get('total', 0):.0f} ms."
    ]
    if result.incomplete_reason:
        notes.append(f"Incomplete: {result.incomplete_reason}.")
    return notes + _common_notes(result)


def _notes_of_scan(result: ScanResult) -> list[str]:
    until = f" until {result.until:%Y-%m-%d %H:%M}" if result.until else ""
    notes = [f"{len(result.rows)} rows since {result.since:%Y-%m-%d %H:%M}{until}, UTC."]
    if result.next_page:
        notes.append(f"There are more: --page {result.next_page}")
    return notes + _common_notes(result)


def _common_notes(answer: SearchResult | ScanResult) -> list[str]:
    unmatched = [
        f"No row has {one.filter} “{one.value}”."
        + (f" Near: {', '.join(one.suggestions)}." if one.suggestions else "")
        for one in answer.filters_unmatched
    ]
    return unmatched + [f"Degraded: {one.stage}: {one.reason}." for one in answer.degraded]
