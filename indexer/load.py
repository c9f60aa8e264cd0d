"""Loading a snapshot: any size, in bounded memory, one transaction a batch, resumable."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from indexer import records, snapshot, store
from indexer.errors import BadRecord
from indexer.lexical import Probe
from indexer.records import Repairs, Values
from indexer.store import Tally, Writer

BATCH_ROWS: Final = 500


@dataclass(slots=True)
class LoadReport:
    """What a load did."""

    tally: Tally
    probe: Probe | None = None
    resumed_after: int = 0
    emptied: bool = False
    lines: int = 0
    bad: int = 0
    repairs: Repairs = field(default_factory=Repairs)


def load_snapshot(
    path: Path,
    url: str,
    *,
    on_bad_line: Callable[[int, str], None],
    on_progress: Callable[[int, int], None] = lambda position, rows: None,
    batch_rows: int = BATCH_ROWS,
    replace: bool = False,
) -> LoadReport:
    """Load a snapshot file into the index at `url`, upserting by `vector_id`.

    With `replace` an index that holds another source is emptied first.

    `on_bad_line` is told the number of each line that is skipped and why; `on_progress` the
    position in the file in bytes and the rows stored. A load that was cut off goes on after its
    last stored batch. Raises BadSource for a file that is no snapshot, Incompatible before
    anything is written when the model or dimension differs from the index.
    """
    mark = snapshot.fingerprint(path) if path.is_file() else ""
    with snapshot.open_snapshot(path) as reader:
        header = reader.header
        source = header.source or path.name
        emptied = replace and store.clear(url, unless_source=source)
        with Writer(
            url,
            embedding_model=header.embedding_model,
            dimensions=header.dimensions,
            source=source,
        ) as writer:
            loading = _Loading(writer, reader, mark, on_bad_line, on_progress, batch_rows)
            loading.report.emptied = emptied
            try:
                loading.run()
            finally:
                if not writer.connection.broken:
                    loading.report.probe = writer.finish() if loading.ended else None
            return loading.report


class _Loading:
    """The state of one load: the batch being filled and the line it has reached."""

    def __init__(
        self,
        writer: Writer,
        reader: snapshot.SnapshotReader,
        mark: str,
        on_bad_line: Callable[[int, str], None],
        on_progress: Callable[[int, int], None],
        batch_rows: int,
    ) -> None:
        self.report = LoadReport(writer.tally)
        self.ended = False
        self._writer = writer
        self._reader = reader
        self._mark = mark
        self._on_bad_line = on_bad_line
        self._on_progress = on_progress
        self._batch_rows = batch_rows
        self._rows: list[Values] = []
        self._edges: list[Values] = []

    def run(self) -> None:
        earlier = self._writer.recall("load") or {}
        if earlier.get("mark") == self._mark:
            self.report.resumed_after = earlier["line"]
        for line in self._reader:
            if line.number <= self.report.resumed_after:
                continue
            self.report.lines += 1
            self._take(line)
            if len(self._rows) + len(self._edges) >= self._batch_rows:
                self._flush(line.number)
        self._flush(self.report.resumed_after + self.report.lines + 1)
        self.ended = True

    def _take(self, line: snapshot.Line) -> None:
        try:
            if line.record is None:
                raise BadRecord(line.problem)
            if snapshot.require_kind(line.record) == "edge":
                self._edges.append(records.parse_edge(line.record, repairs=self.report.repairs))
            else:
                self._rows.append(
                    records.parse_row(
                        line.record,
                        dimensions=self._reader.header.dimensions,
                        repairs=self.report.repairs,
                    )
                )
        except BadRecord as error:
            self.report.bad += 1
            self._on_bad_line(line.number, str(error))

    def _flush(self, line: int) -> None:
        progress = {"mark": self._mark, "line": line}
        self._writer.store(self._rows, self._edges, notes={"load": progress})
        self._rows, self._edges = [], []
        tally = self._writer.tally
        self._on_progress(
            self._reader.position, tally.inserted + tally.updated + tally.unchanged + tally.edges
        )
