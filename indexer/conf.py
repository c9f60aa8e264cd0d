"""Settings of the owner's side. They are read from the environment by these commands alone: the
web application never learns how to write the index."""

import os
from typing import Final

from indexer.errors import IndexerError

EMBEDDED_CHARACTERS: Final = 600  # what most rows say, they say at their beginning
DOC_PATTERNS: Final = "*.md,*.markdown,*.rst,*.adoc,*.asciidoc,README,README.txt"


def owner_url() -> str:
    """Return the URL with which the index is written; raises IndexerError where it is not set."""
    url = os.environ.get("INDEX_OWNER_URL", "")
    if not url:
        raise IndexerError(
            "INDEX_OWNER_URL is not set: give the URL of the index database for the role "
            "rag_owner, such as postgresql://rag_owner@host/rag_index."
        )
    return url


def embedded_characters() -> int:
    """Return how many characters of `content` are embedded: INDEX_EMBEDDED_CHARACTERS, or 600.

    Raises IndexerError where it is no positive number.
    """
    text = os.environ.get("INDEX_EMBEDDED_CHARACTERS", "") or str(EMBEDDED_CHARACTERS)
    if not text.isdecimal() or int(text) < 1:
        raise IndexerError(f"INDEX_EMBEDDED_CHARACTERS is {text!r}; it must be a positive number.")
    return int(text)


def doc_patterns() -> list[str]:
    """Return the shell patterns of the names of documents: INDEX_DOC_PATTERNS, by commas."""
    text = os.environ.get("INDEX_DOC_PATTERNS", "") or DOC_PATTERNS
    return [pattern.strip() for pattern in text.split(",") if pattern.strip()]
