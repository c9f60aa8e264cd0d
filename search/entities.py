"""What a row points at, and the collapse of rows that point at the same thing (pure).

The definition and its reasons are in docs/entities.md.
"""

from collections.abc import Iterable, Sequence

from search.types import Candidate, Entity, RankedRow, Row

_THREAD_TYPES = frozenset(
    {"issue", "pull_request", "issue_comment", "pr_review", "pr_review_comment"}
)

# The same key in SQL, over the columns of search_docs: what deepening leaves out. A test holds
# the two together on every combination of type, path and number.
ENTITY_KEY_SQL = """
    CASE
        WHEN type = 'doc' AND doc_path <> '' THEN 'file:' || repo || ':' || doc_path
        WHEN type = 'diff' AND file_path <> '' THEN 'file:' || repo || ':' || file_path
        WHEN type IN ('issue', 'pull_request', 'issue_comment', 'pr_review', 'pr_review_comment')
             AND number <> 0 THEN 'thread:' || repo || ':' || number
        ELSE 'row:' || vector_id
    END
"""


def entity_key(
    *, vector_id: str, repo: str, type: str, number: int, doc_path: str, file_path: str
) -> str:
    """Return the key of the thing that a row points at; equal keys fold.

    `file:{repo}:{path}` for a document and every diff of it, `thread:{repo}:{number}` for an
    issue or pull request and what was written under it, `row:{vector_id}` for anything else and
    for a row whose path is empty or number is 0: such a row never folds. No key holds a commit:
    two files of one commit are two things.
    """
    path = {"doc": doc_path, "diff": file_path}.get(type)
    if path:
        return f"file:{repo}:{path}"
    if type in _THREAD_TYPES and number:
        return f"thread:{repo}:{number}"
    return f"row:{vector_id}"


def key_of(row: RankedRow) -> str:
    """Return the entity key of a pool row."""
    return row_key(row.candidate)


def row_key(row: Candidate | Row) -> str:
    """Return the entity key of a row, as a ranker brought it or as it is shown."""
    return entity_key(
        vector_id=row.vector_id,
        repo=row.repo,
        type=row.type,
        number=row.number,
        doc_path=row.doc_path,
        file_path=row.file_path,
    )


def collapse(rows: Iterable[RankedRow]) -> list[Entity]:
    """Fold rows of one entity, keeping order: the first row of each becomes the representative.

    Whatever order the rows come in is the final order; the newest version is not preferred. Every
    row ends up in exactly one entity, as representative or in `others`.
    """
    groups: dict[str, list[RankedRow]] = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    return [Entity(key, first, tuple(others)) for key, (first, *others) in groups.items()]


def distinct(rows: Sequence[RankedRow]) -> int:
    """Return how many entities `rows` hold."""
    return len({key_of(row) for row in rows})
