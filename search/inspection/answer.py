"""The answer as the page draws it: cards, the strip above them, the view before the collapse."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from search.inspection import charts
from search.places import entity_places, fused_places
from search.types import RANKERS, FoldedRow, Hit, PlacedRow, RankedRow, Row, SearchResult, Snippet

_NOUNS: Final[Mapping[str, str]] = {"file": "file", "thread": "thread"}


@dataclass(frozen=True, slots=True)
class Figure:
    """What one ranker said of a row; None where it did not hold the row."""

    ranker: str
    rank: int | None
    score: float | None


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a snippet."""

    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One row in a table or on a card: what it is, where it came, why."""

    row: Row
    title: str
    url: str
    when: datetime | None
    ranked: RankedRow
    figures: tuple[Figure, ...]
    pool_place: int
    fused_place: int
    entity_place: int
    colour: int
    representative: bool

    @property
    def moved(self) -> bool:
        """Whether reranking, or sorting by time, gave it another place."""
        return self.pool_place != self.fused_place

    @property
    def rises(self) -> int:
        """Places by which the collapse lifts it, if it represents its entity."""
        return self.pool_place - self.entity_place


@dataclass(frozen=True, slots=True)
class Card:
    """One entity of the answer."""

    place: int
    hit: Hit
    line: Line
    bars: list[charts.Bar]
    snippet: list[Passage]
    others: list[Line]
    noun: str
    is_new: bool

    @property
    def rows(self) -> int:
        """How many rows of the pool it stands for, itself included."""
        return 1 + len(self.others)


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that the page shows of one search."""

    result: SearchResult
    cards: list[Card]
    before: list[Line]
    slots: list[charts.Slot]
    candidates: list[tuple[str, int, str]]
    times: list[charts.StageTime]
    folded: int
    rerank: str

    @property
    def total_ms(self) -> float:
        return self.result.trace.timings_ms.get("total", 0.0)

    @property
    def repeats(self) -> int:
        """How many of the first `top_k` rows repeated an entity."""
        return sum(slot.again for slot in self.slots)


def answer(result: SearchResult) -> Answer:
    """Return the page's view of a result; reads nothing but the result."""
    trace, top_k = result.trace, result.request.top_k
    entities = entity_places(result)
    lines = _Lines(result, entities)
    best = max((hit.ranked.score for hit in result.hits), default=0.0)
    return Answer(
        result=result,
        cards=[_card(n, hit, lines, best, top_k) for n, hit in enumerate(result.hits, 1)],
        before=[lines.of(placed) for placed in trace.pool[:top_k]],
        slots=charts.slots(trace.pool, entities, top_k),
        candidates=[
            (name, trace.candidates[name], trace.engines.get(name, "not run"))
            for name in RANKERS
            if name in trace.candidates
        ],
        times=charts.stage_times(trace.timings_ms),
        folded=len(trace.pool) - trace.pool_entities,
        rerank=_rerank(result),
    )


class _Lines:
    """Makes lines of the rows of one result."""

    def __init__(self, result: SearchResult, entities: Mapping[str, int]) -> None:
        pool = result.trace.pool
        self._entities = entities
        self._places = {placed.ranked.vector_id: n for n, placed in enumerate(pool, 1)}
        self._fused = fused_places([placed.ranked for placed in pool])
        head = [placed.entity_key for placed in pool[: result.request.top_k]]
        self._colours = charts.colours_of(head)
        self._shown: dict[str, Hit | FoldedRow] = {}
        for hit in result.hits:
            self._shown[hit.ranked.vector_id] = hit
            self._shown |= {other.ranked.vector_id: other for other in hit.others}

    def of(self, placed: PlacedRow) -> Line:
        """Return a line of a row of the pool that belongs to a shown entity."""
        return self.make(self._shown[placed.ranked.vector_id], placed.entity_key)

    def make(self, shown: Hit | FoldedRow, key: str) -> Line:
        """Return the line of a row that is shown."""
        ranked = shown.ranked
        return Line(
            row=shown.row,
            title=shown.title,
            url=web_address(shown.url),
            when=shown.row.updated_at,
            ranked=ranked,
            figures=tuple(
                Figure(name, ranked.ranks.get(name), ranked.scores.get(name)) for name in RANKERS
            ),
            pool_place=self._places[ranked.vector_id],
            fused_place=self._fused[ranked.vector_id],
            entity_place=self._entities[key],
            colour=self._colours.get(key, 0),
            representative=isinstance(shown, Hit),
        )


def web_address(url: str) -> str:
    """Return an address that may become a link, else nothing: only http and https do."""
    try:
        return url if urlsplit(url).scheme in {"http", "https"} else ""
    except ValueError:
        return ""


def passages(snippet: Snippet) -> list[Passage]:
    """Cut a snippet at its marks."""
    found, end = [], 0
    for start, stop in snippet.marks:
        found += [Passage(snippet.text[end:start], False), Passage(snippet.text[start:stop], True)]
        end = stop
    found.append(Passage(snippet.text[end:], False))
    return [piece for piece in found if piece.text]


def noun(key: str) -> str:
    """Return what an entity is called by the form of its key: file, thread or row."""
    return _NOUNS.get(key.partition(":")[0], "row")


def pool_rows(result: SearchResult) -> Iterable[tuple[int, int, PlacedRow, bool]]:
    """Yield each row of the pool with its place, its entity's place and whether it leads it."""
    entities = entity_places(result)
    seen: set[str] = set()
    for place, placed in enumerate(result.trace.pool, 1):
        yield place, entities[placed.entity_key], placed, placed.entity_key not in seen
        seen.add(placed.entity_key)


def _card(place: int, hit: Hit, lines: _Lines, best: float, top_k: int) -> Card:
    line = lines.make(hit, hit.entity_key)
    return Card(
        place=place,
        hit=hit,
        line=line,
        bars=charts.share(hit.ranked, best),
        snippet=passages(hit.snippet),
        others=[lines.make(other, hit.entity_key) for other in hit.others],
        noun=noun(hit.entity_key),
        is_new=line.pool_place > top_k,
    )


def _rerank(result: SearchResult) -> str:
    """Say in a few words whether the answer was reranked, or why not."""
    scored = sum(placed.ranked.rerank_score is not None for placed in result.trace.pool)
    if result.rerank_applied:
        return f"on: {scored} rows scored"
    reason = result.trace.rerank_reason
    if reason is None:
        return "off" if not result.rerank_requested else "nothing to rerank"
    return f"off: {reason}"
