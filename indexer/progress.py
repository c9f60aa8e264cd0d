"""A progress bar on a terminal, silence elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


class Update(Protocol):
    """Tells the bar how far the work is and how many rows are done.

    `total` and `what` are given by work that learns them late, or is done in several parts: for
    each of them the bar begins anew.
    """

    def __call__(
        self, position: int, rows: int, total: int | None = None, what: str | None = None
    ) -> None: ...


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Update]:
    """Yield the function that moves the bar."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,.0f} rows/s,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total, rows=0, rate=0.0)

        def update(
            position: int, rows: int, total: int | None = None, what: str | None = None
        ) -> None:
            if what not in {None, progress.tasks[0].description}:
                progress.reset(task, total=total, description=what)
            elapsed = progress.tasks[0].finished_time or progress.tasks[0].elapsed or 0
            rate = rows / elapsed if elapsed else 0.0
            progress.update(task, completed=position, rows=rows, rate=rate, total=total)

        yield update
