"""Errors of the search service. The docstring of a class is its default message."""


class SearchError(Exception):
    """The search could not be answered."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class InvalidRequest(SearchError):
    """The request is not valid.

    `field` names the parameter; the message says what it may be.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NotFound(SearchError):
    """The index holds no such thing."""


class EmbeddingError(SearchError):
    """The query could not be embedded."""


class RankerUnavailable(SearchError):
    """The only ranker that the request allows could not run."""


class IndexUnavailable(SearchError):
    """The index database did not answer."""


class LexicalIndexError(SearchError):
    """The BM25 index did not answer."""
