"""Settings of the owner's side. They are read from the environment by these commands alone: the
web application never learns how to write the index."""

import os

from indexer.errors import IndexerError


def owner_url() -> str:
    """Return the URL with which the index is written; raises IndexerError where it is not set."""
    url = os.environ.get("INDEX_OWNER_URL", "")
    if not url:
        raise IndexerError(
            "INDEX_OWNER_URL is not set: give the URL of the index database for the role "
            "rag_owner, such as postgresql://rag_owner@host/rag_index."
        )
    return url
