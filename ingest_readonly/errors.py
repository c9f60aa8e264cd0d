"""Errors of the mirror. The docstring of a class is its default message."""


class ReadOnlyIndex(Exception):
    """The index is read-only: it belongs to the ingest side; see the indexer's commands."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
