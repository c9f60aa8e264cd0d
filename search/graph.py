"""Neighbours: rows that the results mention, or that mention them, over `doc_edges`.

They come after the trim and outside `top_k`, and never give an entity a second place: a neighbour
that points at an entity already shown is folded into it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db.backends.utils import CursorWrapper

from search import conf, filters, rows
from search.presentation import folded, neighbour
from search.types import FoldedRow, Hit, Neighbour, Row, SearchRequest

# Returns the rows within `hops` mentions, either way, of the rows shown: how far, and the place of
# the result they are nearest to (the first of equally near ones). A mention of a page that the
# index does not hold ends there. The filters apply to what is returned, not to the way there.
_NEIGHBOURS: Final = """
WITH RECURSIVE reached (id, hop, place) AS (
    SELECT id COLLATE "C", 0, place
      FROM unnest(%(shown)s::text[], %(places)s::integer[]) AS shown (id, place)
     UNION
    SELECT far.vector_id, reached.hop + 1, reached.place
      FROM reached
     CROSS JOIN LATERAL (
               SELECT dst_vector_id AS id FROM doc_edges WHERE src_vector_id = reached.id
                UNION ALL
               SELECT src_vector_id FROM doc_edges WHERE dst_vector_id = reached.id) AS mention
      JOIN search_docs AS far ON far.vector_id = mention.id
     WHERE reached.hop < %(hops)s
), nearest AS (
    SELECT DISTINCT ON (id) id, hop, place FROM reached
     WHERE id <> ALL(%(shown)s) ORDER BY id, hop, place
)
SELECT id, hop, place FROM nearest JOIN search_docs ON vector_id = id
 WHERE {where} ORDER BY hop, place, id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The results, with the neighbours that belong to them, and the other neighbours."""

    hits: tuple[Hit, ...]
    neighbours: tuple[Neighbour, ...] = ()

    @property
    def shown(self) -> list[Row]:
        """The row that each is shown by, in order."""
        return [*(hit.row for hit in self.hits), *(one.row for one in self.neighbours)]


def expand(cursor: CursorWrapper, hits: Sequence[Hit], request: SearchRequest) -> Expansion:
    """Find the neighbours of `hits` within `graph_hops`, nearest first, then by place, then by id.

    Every row of a result is a start, the folded ones included. At most SEARCH_GRAPH_LIMIT rows are
    added. Two statements, none without hits.
    """
    reached = _reached(cursor, hits, request) if hits else []
    ids = [vector_id for vector_id, _, _ in reached]
    found = rows.fetch(ids, with_content=ids)
    return _placed(
        hits,
        [
            neighbour(found[vector_id], hop=hop, source=hits[place].row, query=request.query)
            for vector_id, hop, place in reached
        ],
    )


def _reached(
    cursor: CursorWrapper, hits: Sequence[Hit], request: SearchRequest
) -> list[tuple[str, int, int]]:
    shown = [(row.vector_id, place) for place, hit in enumerate(hits) for row in _rows(hit)]
    cursor.execute(
        _NEIGHBOURS.format(where=filters.where(request.filters)),
        {
            **filters.active(request.filters),
            "shown": [vector_id for vector_id, _ in shown],
            "places": [place for _, place in shown],
            "hops": request.graph_hops,
            "limit": conf.get("SEARCH_GRAPH_LIMIT"),
        },
    )
    return list(cursor.fetchall())


def _rows(hit: Hit) -> tuple[Row, ...]:
    return (hit.row, *(other.row for other in hit.others))


def _placed(hits: Sequence[Hit], found: Sequence[Neighbour]) -> Expansion:
    """Give each entity one place: that of the result, else that of its nearest neighbour."""
    joined: dict[str, list[FoldedRow]] = {hit.entity_key: [] for hit in hits}
    first: dict[str, Neighbour] = {}
    for one in found:
        if one.entity_key in joined:
            joined[one.entity_key].append(folded(one.row))
        else:
            joined[one.entity_key] = []
            first[one.entity_key] = one
    return Expansion(
        tuple(replace(hit, others=(*hit.others, *joined[hit.entity_key])) for hit in hits),
        tuple(replace(one, others=tuple(joined[key])) for key, one in first.items()),
    )
