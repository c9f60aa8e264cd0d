"""A progress bar on a terminal, silence elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes how far of `total` the work is and how many rows are done."""
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

        def update(position: int, rows: int) -> None:
            elapsed = progress.tasks[0].elapsed or 0
            rate = rows / elapsed if elapsed else 0.0
            progress.update(task, completed=position, rows=rows, rate=rate)

        yield update
