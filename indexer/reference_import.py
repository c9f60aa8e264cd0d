"""Importing what a github-rag-mcp deployment holds: its D1 export, its vectors, its records.

Vectors and records are read first, into a private temporary file; then the export is read row by
row and each row joined with them. So nothing is written before every vector was seen, and memory
does not grow with the files. A run that died is run again: rows that are there are left alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from indexer import records
from indexer.d1_export import D1Export, D1Row
from indexer.errors import BadRecord, BadSource, Incompatible
from indexer.import_rows import RowMaker
from indexer.import_staging import Staging
from indexer.json_stream import json_records
from indexer.lexical import Probe
from indexer.packed import Packed, open_packed
from indexer.record_store import parse_facts
from indexer.records import Repairs, Values
from indexer.snapshot import MAX_DIMENSIONS
from indexer.store import Tally, Writer
from indexer.vectorize import parse_vector

BATCH_ROWS: Final = 500
EXAMPLES: Final = 5  # of what is missing, by id
_TELL_EVERY: Final = 500  # lines

BadLine = Callable[[str, int, str], None]
Progress = Callable[[str, int, int, int], None]


@dataclass(slots=True)
class Missing:
    """How often something is not there, and the ids of the first."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, identifier: str) -> None:
        self.count += 1
        if self.count <= EXAMPLES:
            self.examples.append(identifier)


@dataclass(slots=True)
class ImportReport:
    """What an import did, and what it did not find."""

    dimensions: int = 0
    vectors: int = 0
    records: int = 0
    bad: int = 0
    repairs: Repairs = field(default_factory=Repairs)
    no_column: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    rows_without_vector: Missing = field(default_factory=Missing)
    rows_without_creation: Missing = field(default_factory=Missing)
    vectors_without_row: Missing = field(default_factory=Missing)
    records_without_row: Missing = field(default_factory=Missing)
    tally: Tally = field(default_factory=Tally)
    probe: Probe | None = None


def import_reference(
    url: str,
    *,
    exports: Sequence[Path],
    vectors: Sequence[Path],
    record_files: Sequence[Path] = (),
    model: str,
    dimensions: int | None = None,
    on_bad_line: BadLine,
    on_progress: Progress = lambda what, position, total, rows: None,
    batch_rows: int = BATCH_ROWS,
) -> ImportReport:
    """Write rows and edges of D1 exports into the index at `url`, upserting by id.

    `model` made the vectors; `dimensions` is that of the first vector unless given. `on_bad_line`
    is told file, line and problem of each line that is skipped; `on_progress` what is being read,
    the position and size of the file in bytes, and the rows done. Raises BadSource for a file that
    cannot be read, Incompatible before anything is written when a vector differs in dimension from
    the others, or the vectors from the index.
    """
    with Staging() as staging:
        reading = _Reading(staging, on_bad_line, on_progress)
        report = reading.report
        report.dimensions = dimensions or 0
        for path in vectors:
            reading.read_vectors(path)
        if not report.dimensions:
            raise BadSource("there is no usable vector; give --dimensions to import text alone")
        for path in record_files:
            reading.read_records(path)
        source = f"D1 export {', '.join(path.name for path in exports)}"
        with Writer(
            url, embedding_model=model, dimensions=report.dimensions, source=source
        ) as writer:
            report.tally = writer.tally
            try:
                reading.write(exports, writer, batch_rows, wants_vectors=bool(vectors))
            except BadSource as error:
                # What came before the break stays, and can be searched.
                reading.flush(writer)
                writer.finish()
                raise BadSource(f"{error}; what came before is stored") from error
            report.probe = writer.finish()
        reading.count_leftovers()
    return report


class _Reading:
    """The state of one import: what was read, and the batch being filled."""

    def __init__(self, staging: Staging, on_bad_line: BadLine, on_progress: Progress) -> None:
        self.report = ImportReport()
        self._staging = staging
        self._on_bad_line = on_bad_line
        self._on_progress = on_progress
        self._maker = RowMaker(self.report.repairs)
        self.report.no_column = self._maker.no_column
        self._rows: list[Values] = []
        self._edges: list[Values] = []
        self._wants_vectors = True

    def read_vectors(self, path: Path) -> None:
        """Stage the vectors of a file; raises Incompatible where a dimension differs."""
        with open_packed(path) as source:
            for line in json_records(source):
                with self._skipping(source, line.number):
                    if line.record is None:
                        raise BadRecord(line.problem)
                    vector = parse_vector(line.record, self.report.repairs)
                    self._check_dimension(vector.dimensions, f"{source.name} line {line.number}")
                    self._staging.add_vector(vector)
                    self.report.vectors += 1
                if line.number % _TELL_EVERY == 0:
                    self._tell("Reading", source, self.report.vectors)

    def read_records(self, path: Path) -> None:
        """Stage the records of a file."""
        with open_packed(path) as source:
            for line in json_records(source):
                with self._skipping(source, line.number):
                    if line.record is None:
                        raise BadRecord(line.problem)
                    self._staging.add_facts(*parse_facts(line.record))
                    self.report.records += 1
                if line.number % _TELL_EVERY == 0:
                    self._tell("Reading", source, self.report.records)

    def write(
        self, exports: Sequence[Path], writer: Writer, batch_rows: int, *, wants_vectors: bool
    ) -> None:
        """Store the rows of exports; raises BadSource where none of them holds any."""
        self._wants_vectors = wants_vectors
        found = False
        for path in exports:
            with open_packed(path) as source:
                export = D1Export(source)
                for row in export:
                    found = True
                    with self._skipping(source, row.line):
                        self._take(row)
                    if len(self._rows) + len(self._edges) >= batch_rows:
                        self.flush(writer)
                        self._tell("Importing", source, _rows(writer.tally))
                self.flush(writer)
                self.report.ignored += export.ignored
        if not found:
            names = ", ".join(path.name for path in exports)
            raise BadSource(f"{names}: no INSERT INTO search_docs or doc_edges")

    def flush(self, writer: Writer) -> None:
        """Store the batch."""
        writer.store(self._rows, self._edges)
        self._rows, self._edges = [], []

    def count_leftovers(self) -> None:
        """Count the vectors and records that no row claimed."""
        report = self.report
        report.vectors_without_row = Missing(*self._leftover("vectors"))
        report.records_without_row = Missing(*self._leftover("facts"))

    def _leftover(self, kind: str) -> tuple[int, list[str]]:
        count, examples = self._staging.without_row(kind, EXAMPLES)
        return count, list(examples)

    def _take(self, row: D1Row) -> None:
        if row.problem is not None:
            raise BadRecord(row.problem)
        if row.table == "doc_edges":
            edge = self._maker.edge(row.values)
            self._edges.append(records.parse_edge(edge, repairs=self.report.repairs))
        else:
            self._take_row(row)

    def _take_row(self, row: D1Row) -> None:
        repairs = self.report.repairs
        identifier = records.clean(str(row.values.get("vector_id") or ""), Repairs())
        vector, metadata = self._staging.vector(identifier)
        record = self._maker.row(row.values, metadata, self._staging.facts(identifier))
        values = records.parse_row(record, dimensions=self.report.dimensions, repairs=repairs)
        values["embedding"] = vector
        self._rows.append(values)
        if not self._staging.note_row(identifier):
            repairs.count("row given twice: the later one holds")
        if vector is None and self._wants_vectors:
            self.report.rows_without_vector.add(identifier)
        if values["created_at"] is None:
            self.report.rows_without_creation.add(identifier)

    def _check_dimension(self, dimensions: int, where: str) -> None:
        if dimensions > MAX_DIMENSIONS:
            raise BadSource(f"{where}: {dimensions:,} dimensions; at most {MAX_DIMENSIONS:,} fit")
        self.report.dimensions = self.report.dimensions or dimensions
        if dimensions != self.report.dimensions:
            raise Incompatible(
                f"{where}: a vector of {dimensions} dimensions, where {self.report.dimensions} "
                "were expected. Nothing was written."
            )

    @contextmanager
    def _skipping(self, source: Packed, line: int) -> Iterator[None]:
        try:
            yield
        except BadRecord as error:
            self.report.bad += 1
            self._on_bad_line(source.name, line, str(error))

    def _tell(self, what: str, source: Packed, rows: int) -> None:
        self._on_progress(f"{what} {source.name}", source.position, source.size, rows)


def _rows(tally: Tally) -> int:
    return tally.inserted + tally.updated + tally.unchanged
