"""How far the index has come with a GitHub repository: cursors, ETags, and the pass of --full.

All of it is in the owner's state table, and every change is stored in the transaction of the rows
that it speaks of. So a run that dies at any point is gone on with, and a cursor never stands behind
an item that is not in the index.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from indexer.errors import IndexerError
from indexer.github_rows import moment
from indexer.store import Writer

# A change of what a row is made of: rows of an earlier version are read again.
_RULES: Final = 1
# What is read again before a cursor: two changes may share a second, and GitHub answers from
# copies that may be some seconds behind.
_OVERLAP: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class FirstPage:
    """What the first page of a listing was when it was stored: for an answer 304."""

    etag: str
    last: str
    more: bool


class State:
    """The state of one repository. Raises IndexerError where the name is another repository's now.

    With `full` everything is read again, from the beginning and without ETags; a full pass that
    died is gone on with by any later run.
    """

    def __init__(self, writer: Writer, repo: str, identity: int, *, full: bool) -> None:
        self._writer = writer
        self._repo = repo
        self._key = f"github:{repo}"
        stored = None if writer.fresh else writer.recall(self._key)
        if stored and stored["id"] != identity and not full:
            raise IndexerError(
                f"{repo} is another repository than the one that was indexed under this name. "
                "Nothing was written; --full replaces its rows."
            )
        if stored and stored["rules"] == _RULES and stored["id"] == identity:
            self._values: dict[str, Any] = stored
            if full and not stored["full"]:
                self._begin(identity, full=True)
        else:
            self._begin(identity, full=full or stored is not None)

    def _begin(self, identity: int, *, full: bool) -> None:
        self._values = {
            "id": identity,
            "rules": _RULES,
            "full": full,
            "cursors": {},
            "first": {},
            "done": [],
            "arrived": [],
        }
        with self._writer.connection.transaction():
            self._forget("github-seen")
            if self._writer.fresh:
                self._forget("github-etag")
            self._writer.remember(self._key, self._values)

    @property
    def full(self) -> bool:
        """Whether a pass over everything is under way, which removes what is gone."""
        return bool(self._values["full"])

    @property
    def arrived(self) -> list[int]:
        """Numbers of issues that came with comments older than the cursor of comments."""
        return list(self._values["arrived"])

    def cursor(self, resource: str) -> datetime | None:
        """Return up to when everything of a resource is stored."""
        return moment(self._values["cursors"].get(resource))

    def start(self, resource: str) -> datetime | None:
        """Return from when on a resource is to be read."""
        cursor = self.cursor(resource)
        return cursor - _OVERLAP if cursor else None

    def move(self, resource: str, reached: datetime | None) -> None:
        """Move a cursor forward; it is stored with the next notes."""
        cursor = self.cursor(resource)
        if reached and (cursor is None or reached > cursor):
            self._values["cursors"][resource] = reached.isoformat()

    def first_page(self, resource: str, url: str) -> FirstPage | None:
        """Return what is known of the first page of a listing at this address."""
        found = self._values["first"].get(resource)
        if self.full or not found or found["url"] != url:
            return None
        return FirstPage(found["etag"], found["last"], found["more"])

    def know_first_page(self, resource: str, url: str, page: FirstPage) -> None:
        """Keep what a first page is; it is stored with the next notes."""
        facts = {"url": url, "etag": page.etag, "last": page.last, "more": page.more}
        self._values["first"][resource] = facts

    def etag(self, path: str) -> str:
        """Return the ETag of a small listing whose items are stored."""
        return "" if self.full else self._writer.recall(self._etag_key(path)) or ""

    def arrive(self, numbers: Sequence[int]) -> None:
        self._values["arrived"] = sorted({*self._values["arrived"], *numbers})

    def settle(self, number: int) -> None:
        """Take a number off those that arrived."""
        self._values["arrived"] = [one for one in self._values["arrived"] if one != number]

    def complete(self, resource: str) -> None:
        """Note that a resource was read to its end."""
        self._values["done"] = sorted({*self._values["done"], resource})

    def notes(
        self,
        resource: str = "",
        seen: Sequence[str] = (),
        etags: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return what to remember with a batch: the state, and which rows a full pass has seen."""
        notes: dict[str, Any] = {self._key: self._values}
        if self.full and seen:
            notes[f"github-seen:{self._repo}:{resource}:{uuid4().hex}"] = list(seen)
        for path, etag in (etags or {}).items():
            notes[self._etag_key(path)] = etag
        return notes

    def gone(self, types: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the ids of the rows that a full pass did not see.

        `types` are those of the rows of each resource; one that was not read to its end has none.
        """
        gone: list[str] = []
        for resource in self._values["done"]:
            # The ids of a resource's rows that are on no page of it.
            found = self._writer.connection.execute(
                """
                SELECT vector_id FROM search_docs
                 WHERE repo = %(repo)s AND type = ANY(%(types)s)
                EXCEPT
                SELECT jsonb_array_elements_text(value) FROM indexer_state
                 WHERE starts_with(key, %(prefix)s)
                """,
                {
                    "repo": self._repo,
                    "types": list(types[resource]),
                    "prefix": f"github-seen:{self._repo}:{resource}:",
                },
            )
            gone += [key for (key,) in found.fetchall()]
        return gone

    def end(self, deleted: Sequence[str]) -> None:
        """End a run: delete what a full pass found gone, and forget what it saw."""
        self._values["done"] = []
        was_full = self.full
        self._values["full"] = False
        self._writer.store([], deleted=deleted, notes=self.notes())
        if was_full:
            self._forget("github-seen")

    def also_called(self) -> list[str]:
        """Return other names under which this repository was indexed."""
        found = self._writer.connection.execute(
            """
            SELECT substr(key, 8) FROM indexer_state
             WHERE starts_with(key, 'github:') AND key <> %(key)s AND value ->> 'id' = %(id)s
            """,
            {"key": self._key, "id": str(self._values["id"])},
        )
        return [name for (name,) in found.fetchall()]

    def _etag_key(self, path: str) -> str:
        return f"github-etag:{self._repo}:{path}"

    def _forget(self, kind: str) -> None:
        self._writer.connection.execute(
            "DELETE FROM indexer_state WHERE starts_with(key, %s)", [f"{kind}:{self._repo}:"]
        )
