"""Errors of the owner's side. The docstring of a class is its default message."""


class IndexerError(Exception):
    """The index could not be written."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class BadRecord(IndexerError):
    """A record of the input does not follow the contract."""


class BadSource(IndexerError):
    """The input cannot be read as a snapshot."""


class Incompatible(IndexerError):
    """The input does not fit the index."""
