"""Indexing a git repository: what is new since the last run, and only that.

A run reads the commits that lead to the branch but not to the commit of its mark; with its last
batch it deletes the diffs of commits that lead to the branch no longer (after a force-push) and
moves the mark. A batch is a transaction and holds how far it is, so a run that died is gone on
with. Diff rows never change: one that is there is not made again. Documents are those of the
tree; they are compared with what is stored.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from indexer import git_docs, git_history, records, store
from indexer.conf import doc_patterns
from indexer.embed import Batch, Vectors
from indexer.errors import IndexerError
from indexer.git_history import Commit, Objects
from indexer.git_patch import Change
from indexer.git_source import GitSource, Mark, fingerprint
from indexer.lexical import Probe
from indexer.records import Repairs
from indexer.store import Tally, Writer
from search.embedding import Embedder

# Told what is being read, how far of how much, and the rows stored so far.
OnProgress = Callable[[str, int, int, int], None]


@dataclass(slots=True)
class GitReport:
    """What a run did."""

    source: GitSource
    tally: Tally
    commits: int = 0
    documents: int = 0
    embedded: int = 0
    reused: int = 0
    probe: Probe | None = None
    repairs: Repairs = field(default_factory=Repairs)


def index_git(
    source: GitSource,
    url: str,
    backend: Embedder,
    *,
    embed: bool = True,
    on_progress: OnProgress = lambda what, position, total, rows: None,
) -> GitReport:
    """Bring the index at `url` to the state of a branch; everything that is new gets a vector.

    Without `embed` rows are left without one. `on_progress` is told what is being read, how far
    of how much, and the rows stored. Raises Incompatible before anything is written when the
    index holds vectors of another model, BadSource when git fails, IndexerError when the backend
    does.
    """
    model, dimensions = backend.model, backend.dimensions
    if not embed:
        with store.connect(url) as connection:
            model, dimensions = store.describe(connection) or (model, dimensions)
    with Writer(url, embedding_model=model, dimensions=dimensions, source=source.about) as writer:
        vectors = Vectors(writer.connection, backend if embed else None)
        run = GitRun(writer, source, vectors, on_progress)
        try:
            run.run()
        except IndexerError:
            if writer.unfinished:  # what is stored can be searched
                writer.finish()
            raise
        if writer.unfinished:
            run.report.probe = writer.finish()
        return run.report


class GitRun:
    """One run over a branch: its history, then its documents."""

    def __init__(
        self, writer: Writer, source: GitSource, vectors: Vectors, on_progress: OnProgress
    ) -> None:
        self.report = GitReport(source, writer.tally)
        self._writer = writer
        self._source = source
        self._vectors = vectors
        self._on_progress = on_progress
        self._mark = Mark(writer, source)
        self._batch = Batch()
        self._commit: Commit | None = None

    def run(self) -> None:
        """Store what is new; raises BadSource and IndexerError."""
        with git_history.objects(self._source.repository) as objects:
            if not self._mark.reached:
                self._index_history(objects)
            self._index_documents(objects)
        self.report.embedded = self._vectors.embedded
        self.report.reused = self._vectors.reused

    def _index_history(self, objects: Objects) -> None:
        selection, done, total = self._mark.remaining()
        self.report.commits = total - done
        waiting: list[tuple[Change, str]] = []
        with git_history.changes(self._source.repository, selection, patches=True) as changes:
            for change, path in self._with_rows(changes):
                waiting.append((change, path))
                if len(waiting) >= self._batch.size:
                    # The commit of the last change may have more: it counts as not yet stored.
                    self._store_diffs(waiting, objects, done + change.number, total)
                    waiting = []
        self._store_diffs(waiting, objects, total, total)
        lost = self._mark.lost_rows()
        self._writer.store([], deleted=lost, notes=self._mark.notes_at_end())

    def _with_rows(self, changes: Iterable[Change]) -> Iterator[tuple[Change, str]]:
        """Yield the changes that have a row, with its path."""
        cut = ""
        for change in changes:
            if change.commit in self._mark.shallow:
                if change.commit != cut:
                    self.report.repairs.count("commit without its parents (shallow clone) skipped")
                cut = change.commit
            elif (path := git_history.row_path(change, self.report.repairs)) is not None:
                yield change, path

    def _store_diffs(
        self, waiting: Sequence[tuple[Change, str]], objects: Objects, position: int, total: int
    ) -> None:
        repo, repairs = self._source.repo, self.report.repairs
        keys = [git_history.diff_id(repo, change.commit, path) for change, path in waiting]
        stored = self._stored(keys)
        rows = []
        for key, (change, path) in zip(keys, waiting, strict=True):
            if key not in stored:
                commit = self._commit_of(change, objects)
                rows.append(git_history.diff_record(repo, path, change, commit, repairs))
        self._store(rows, self._mark.notes_at(position))
        self._on_progress("commits", position, total, self._rows)

    def _commit_of(self, change: Change, objects: Objects) -> Commit:
        if self._commit is None or self._commit.sha != change.commit:
            data = objects.read(change.commit)
            self._commit = git_history.read_commit(change.commit, data, self.report.repairs)
        return self._commit

    def _index_documents(self, objects: Objects) -> None:
        source, mark = self._source, self._mark
        patterns = doc_patterns()
        key = f"git-docs:{source.repo}"
        state = {"commit": source.tip, "patterns": patterns, "shallow": fingerprint(mark.shallow)}
        if self._writer.recall(key) == state and not self._writer.fresh:
            return
        names = git_docs.pattern_of(patterns)
        docs = git_docs.documents(source.repository, source.tip, names, self.report.repairs)
        dates = git_docs.last_changes(
            source.repository, source.tip, names=names, skipped=mark.shallow, objects=objects
        )
        kept: set[str] = set()
        while docs:
            some, docs = docs[: self._batch.size], docs[self._batch.size :]
            kept |= self._store_documents(some, objects, dates)
            self.report.documents = len(kept)
            self._on_progress("documents", len(kept), len(kept) + len(docs), self._rows)
        self._writer.store([], deleted=sorted(self._stored_documents() - kept), notes={key: state})

    def _store_documents(
        self, docs: Sequence[git_docs.Doc], objects: Objects, dates: dict[str, datetime]
    ) -> set[str]:
        """Store the documents that are not there in the same form; return the ids of all."""
        read = [
            git_docs.doc_record(self._source.repo, doc, objects, dates, self.report.repairs)
            for doc in docs
        ]
        found = {record["vector_id"]: record for record in read if record is not None}
        stored = self._stored(list(found))
        self._store(
            [
                record
                for key, record in found.items()
                if stored.get(key) != (record["content"], dates.get(record["doc_path"]))
            ]
        )
        return set(found)

    def _store(self, found: Sequence[dict[str, Any]], notes: dict[str, Any] | None = None) -> None:
        """Store records as one batch, with their vectors; nothing is written for none."""
        if not found:
            return
        with self._batch:
            rows = [
                records.parse_row(
                    record, dimensions=self._writer.dimensions, repairs=self.report.repairs
                )
                for record in found
            ]
            self._vectors.fill(rows)
            self._writer.store(rows, notes=notes)

    def _stored(self, keys: Sequence[str]) -> dict[str, tuple[str, datetime | None]]:
        """Return content and time of those rows that are there."""
        # (id, content, time) of the rows with given ids.
        found = self._writer.connection.execute(
            """
            SELECT vector_id, content, updated_at FROM search_docs
             WHERE vector_id = ANY(%(keys)s)
            """,
            {"keys": list(keys)},
        )
        return {key: (content, updated) for key, content, updated in found.fetchall()}

    def _stored_documents(self) -> set[str]:
        # The ids of the repository's documents.
        found = self._writer.connection.execute(
            "SELECT vector_id FROM search_docs WHERE repo = %(repo)s AND type = 'doc'",
            {"repo": self._source.repo},
        )
        return {key for (key,) in found.fetchall()}

    @property
    def _rows(self) -> int:
        return self.report.tally.inserted + self.report.tally.updated
