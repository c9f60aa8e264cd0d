"""Reading the reviews of pull requests: GitHub lists them for one pull request at a time.

So they are asked for only where a pull request changed since the last run; which did, the index
knows, since a review changes the time of its pull request.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import psycopg

from indexer import github_rows
from indexer.errors import IndexerError
from indexer.github_client import Refused
from indexer.github_resources import Reader
from indexer.github_rows import Item

_RESOURCE: Final = "reviews"
_MOST_WAITING: Final = 50  # pull requests whose reviews are stored together


class Reviews:
    """The reviews that were read and wait to be stored."""

    def __init__(self, reader: Reader, connection: psycopg.Connection) -> None:
        self._reader = reader
        self._connection = connection
        self._reached: datetime | None = None
        self._clear()

    def read(self) -> None:
        """Read the reviews of all pull requests that changed; raises IndexerError."""
        pulls = self._changed()
        for position, (number, updated) in enumerate(pulls, 1):
            try:
                self._read_one(number)
            except Refused as error:
                self._reader.note_refusal(f"reviews of #{number}", error)
            except IndexerError:  # what came before need not be asked for again
                self._store()
                raise
            self._reached = updated
            self._waiting += 1
            if self._waiting >= _MOST_WAITING or position == len(pulls):
                self._store()
            self._reader.progress("reviews of pull requests", position, len(pulls))
        self._reader.state.complete(_RESOURCE)

    def _clear(self) -> None:
        self._items: list[Item] = []
        self._etags: dict[str, str] = {}
        self._gone: set[str] = set()
        self._reached = None
        self._waiting = 0

    def _changed(self) -> Sequence[tuple[int, datetime | None]]:
        start = self._reader.state.start(_RESOURCE)
        # (number, time) of the pull requests that changed since a time, in the order of the cursor.
        found = self._connection.execute(
            """
            SELECT number, updated_at FROM search_docs
             WHERE repo = %(repo)s AND type = 'pull_request' AND number <> 0
               AND (updated_at IS NULL OR %(start)s::timestamptz IS NULL OR updated_at >= %(start)s)
             ORDER BY updated_at NULLS FIRST, number
            """,
            {"repo": self._reader.repo, "start": start},
        )
        return found.fetchall()

    def _read_one(self, number: int) -> None:
        path = f"/pulls/{number}/reviews"
        etag, page_number = self._reader.state.etag(path), 1
        items: list[Item] = []
        while True:
            answer = self._reader.get(path, page_number, etag if page_number == 1 else "")
            if answer.unchanged:
                return
            page = self._reader.page(answer, "reviews")
            found = [
                {**one, "number": number} if isinstance(one, dict) else one for one in page.items
            ]
            items += self._reader.made(github_rows.review, found)
            if not page.more:
                break
            page_number += 1
        if page_number == 1:  # of several pages, the first does not tell of a change on the second
            self._etags[path] = answer.etag
        self._items += items
        self._gone |= self._stored(number) - {item.vector_id for item in items}

    def _stored(self, number: int) -> set[str]:
        # The ids of the reviews of a pull request.
        found = self._connection.execute(
            """
            SELECT vector_id FROM search_docs
             WHERE repo = %(repo)s AND type = 'pr_review' AND number = %(number)s
            """,
            {"repo": self._reader.repo, "number": number},
        )
        return {key for (key,) in found.fetchall()}

    def _store(self) -> None:
        state = self._reader.state
        state.move(_RESOURCE, self._reached and min(self._reached, self._reader.now))
        seen = [item.vector_id for item in self._items if item.record]
        notes = state.notes(_RESOURCE, seen, etags=self._etags)
        self._reader.rows.put(self._items, notes, deleted=self._gone)
        self._clear()
