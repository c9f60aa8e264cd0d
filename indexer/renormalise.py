"""Making the lexical columns anew where they were made by another version of the normaliser."""

from typing import Final

import psycopg

from search.normalise import NORMALISER_VERSION, normalise

_BATCH: Final = 500

# Returns the next rows in the order of their ids.
_NEXT: Final = """
SELECT vector_id, title, content FROM search_docs
 WHERE vector_id > %(after)s ORDER BY vector_id LIMIT %(limit)s
"""
_UPDATE: Final = """
UPDATE search_docs SET title_fts = %(title)s, content_fts = %(content)s
 WHERE vector_id = %(key)s AND (title_fts, content_fts) IS DISTINCT FROM (%(title)s, %(content)s)
"""


def is_stale(connection: psycopg.Connection) -> bool:
    """Whether rows may hold words of another version: index_info says so, before any write."""
    row = connection.execute("SELECT normaliser_version FROM index_info").fetchone()
    return row is not None and row[0] != NORMALISER_VERSION


def renormalise(connection: psycopg.Connection) -> int:
    """Bring every row to this version, in batches; return how many rows changed.

    The version is written last, so a run that was cut off begins again and skips what it did.
    """
    changed, after = 0, ""
    while True:
        rows = connection.execute(_NEXT, {"after": after, "limit": _BATCH}).fetchall()
        if not rows:
            break
        with connection.transaction(), connection.cursor() as cursor:
            for key, title, content in rows:
                words = {"key": key, "title": normalise(title), "content": normalise(content)}
                cursor.execute(_UPDATE, words)
                changed += cursor.rowcount
        after = rows[-1][0]
    connection.execute(
        "UPDATE index_info SET normaliser_version = %s, written_at = clock_timestamp()",
        [NORMALISER_VERSION],
    )
    return changed
