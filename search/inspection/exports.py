"""The search to take away: as a curl line, as JSON's address, as CSV."""

import csv
import io
import json
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from search.inspection.answer import pool_rows
from search.inspection.form import Parameters
from search.serializers.wire import from_query_string
from search.types import RANKERS, RankedRow, SearchResult

# A spreadsheet takes a cell that begins so for a formula; full-width signs count for some.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# A spreadsheet reads UTF-8 only behind this mark.
_BYTE_ORDER_MARK: Final = "\ufeff"
# Categories of characters that a terminal acts on or hides: controls, formats, separators, ...
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})

_RANKS: Final = [f"{name}_{what}" for name in RANKERS for what in ("rank", "score")]
_ROW_HEAD: Final = [
    "place", "entity_place", "entity_key", "representative", "vector_id", "repo", "type", "number",
    "path", "updated_at", "score", "rerank_score", "window", *_RANKS,
]  # fmt: skip
_OTHER_HEAD: Final = [
    "entity_place", "entity_key", "representative_id", "vector_id", "type", "title", "url",
    "commit_sha", "updated_at", "score", "rerank_score", *_RANKS,
]  # fmt: skip

Cell = str | int | float | bool | None


def curl(url: str, given: Parameters) -> str:
    """Return a shell command that asks the API for the same search.

    The parameters travel as JSON, quoted for a POSIX shell; characters that a terminal would act
    on or hide are escaped. The token is left to the variable TOKEN.
    """
    body = _visible(json.dumps(from_query_string(given.query_string), ensure_ascii=False))
    return (
        f'curl -sS {shlex.quote(url)} -H "Authorization: Token $TOKEN"'
        f" -H 'Content-Type: application/json' --data-raw {shlex.quote(body)}"
    )


def rows_csv(result: SearchResult) -> str:
    """Return every row of the pool in final order, each with the entity it went to."""
    return _table(_ROW_HEAD, _rows(result))


def others_csv(result: SearchResult) -> str:
    """Return the rows that were folded under the results shown."""
    return _table(_OTHER_HEAD, _others(result))


def _rows(result: SearchResult) -> Iterable[Sequence[Cell]]:
    for place, entity_place, placed, leads in pool_rows(result):
        ranked, row = placed.ranked, placed.ranked.candidate
        time = row.updated_at.isoformat() if row.updated_at else None
        yield [
            place, entity_place, placed.entity_key, leads, row.vector_id, row.repo, row.type,
            row.number or None, row.doc_path or row.file_path, time, ranked.score,
            ranked.rerank_score, ranked.window, *_figures(ranked),
        ]  # fmt: skip


def _others(result: SearchResult) -> Iterable[Sequence[Cell]]:
    for place, hit in enumerate(result.hits, 1):
        for other in hit.others:
            ranked, row = other.ranked, other.row
            time = row.updated_at.isoformat() if row.updated_at else None
            yield [
                place, hit.entity_key, hit.row.vector_id, row.vector_id, row.type, other.title,
                other.url, row.commit_sha, time, ranked.score, ranked.rerank_score,
                *_figures(ranked),
            ]  # fmt: skip


def _figures(ranked: RankedRow) -> list[Cell]:
    return [cell for n in RANKERS for cell in (ranked.ranks.get(n), ranked.scores.get(n))]


def _table(head: Sequence[str], lines: Iterable[Sequence[Cell]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(head)
    writer.writerows([[neutral(cell) for cell in line] for line in lines])
    return _BYTE_ORDER_MARK + out.getvalue()


def neutral(cell: Cell) -> Cell:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA):
        return f"'{cell}"
    return cell


def _visible(text: str) -> str:
    return "".join(
        json.dumps(c)[1:-1] if unicodedata.category(c) in _INVISIBLE else c for c in text
    )
