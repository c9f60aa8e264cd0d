"""Rows made ready to be shown: with a title, an address on GitHub and a passage of their text."""

from collections.abc import Mapping, Sequence

from search import links, rows
from search.entities import row_key
from search.snippet import snippet
from search.types import (
    Candidate,
    Entity,
    FoldedRow,
    Hit,
    Neighbour,
    RankedRow,
    Row,
    ScannedRow,
    SearchRequest,
)


def hydrate(request: SearchRequest, entities: Sequence[Entity]) -> tuple[Hit, ...]:
    """Read what is shown of the entities. One statement."""
    shown = [row.vector_id for e in entities for row in (e.representative, *e.others)]
    found = rows.fetch(shown, with_content=[e.representative.vector_id for e in entities])
    return tuple(_hit(request, entity, found) for entity in entities)


def _hit(request: SearchRequest, entity: Entity, found: Mapping[str, Row]) -> Hit:
    row = found[entity.representative.vector_id]
    return Hit(
        entity_key=entity.key,
        ranked=entity.representative,
        row=row,
        title=links.title(row),
        url=links.url(row),
        snippet=snippet(row.content or "", request.query),
        others=tuple(folded(found[ranked.vector_id], ranked) for ranked in entity.others),
    )


def folded(row: Row, ranked: RankedRow | None = None) -> FoldedRow:
    """Return a row as it is shown under a representative; without `ranked` no ranker brought it."""
    return FoldedRow(ranked or _unranked(row), row, links.title(row), links.url(row))


def neighbour(row: Row, *, hop: int, source: Row, query: str) -> Neighbour:
    """Return a row, whose text was read, as a neighbour of the result that shows `source`."""
    return Neighbour(
        entity_key=row_key(row),
        ranked=_unranked(row),
        row=row,
        title=links.title(row),
        url=links.url(row),
        snippet=snippet(row.content or "", query),
        hop=hop,
        source=source,
    )


def scanned(row: Row, *, with_content: bool = False) -> ScannedRow:
    """Return a row, whose text was read, as it is shown outside a ranking."""
    return ScannedRow(
        entity_key=row_key(row),
        row=row,
        title=links.title(row),
        url=links.url(row),
        snippet=snippet(row.content or "", ""),
        content=row.content if with_content else None,
        content_source="index" if with_content else None,
    )


def _unranked(row: Row) -> RankedRow:
    candidate = Candidate(
        vector_id=row.vector_id,
        score=0.0,
        repo=row.repo,
        type=row.type,
        number=row.number,
        doc_path=row.doc_path,
        file_path=row.file_path,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
    return RankedRow(candidate, 0.0, {}, {})
