"""Numbers of the page's pictures: shapes for inline SVG, sized by attributes and classes alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from search.fusion import RRF_K
from search.types import RANKERS, PlacedRow, RankedRow

# Entities that take more than one slot get a colour of their own; the style sheet has this many.
COLOURS: Final = 8
_STAGES: Final = (
    "embed", "dense", "sparse", "title", "fuse", "rerank", "collapse", "hydrate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of the first `top_k`: the entity that takes it, by its own place.

    `colour` is 0 for an entity that takes one slot only; `again` marks a repeated entity.
    """

    place: int
    entity: int
    key: str
    colour: int
    again: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a bar, in percent of the bar's full length."""

    name: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class StageTime:
    """The milliseconds of one stage, and its piece of the common time line."""

    stage: str
    ms: float
    bar: Bar


def slots(pool: Sequence[PlacedRow], entities: Mapping[str, int], top_k: int) -> list[Slot]:
    """Return the first `top_k` places as they were before the collapse."""
    keys = [placed.entity_key for placed in pool[:top_k]]
    colours = colours_of(keys)
    seen: set[str] = set()
    found = []
    for place, key in enumerate(keys, 1):
        found.append(Slot(place, entities[key], key, colours.get(key, 0), key in seen))
        seen.add(key)
    return found


def colours_of(keys: Sequence[str]) -> dict[str, int]:
    """Return a colour, from 1, for each key that comes more than once."""
    repeated = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    return {key: number % COLOURS + 1 for number, key in enumerate(repeated)}


def share(row: RankedRow, best: float) -> list[Bar]:
    """Return what each ranker gave to a row's fused score, the best row's being 100 percent."""
    bars, x = [], 0.0
    for name in RANKERS:
        if name in row.ranks and best > 0:
            width = 100 / (RRF_K + row.ranks[name]) / best
            bars.append(Bar(name, round(x, 2), round(width, 2)))
            x += width
    return bars


def stage_times(timings_ms: Mapping[str, float]) -> list[StageTime]:
    """Return the stages in their order, and any that this page does not know after them.

    Embedding runs beside the lexical rankers, so the pieces are of the sum, not of the total.
    """
    names = [name for name in _STAGES if name in timings_ms]
    names += [name for name in timings_ms if name not in {*_STAGES, "total"}]
    whole = sum(timings_ms[name] for name in names) or 1.0
    found, x = [], 0.0
    for name in names:
        width = 100 * timings_ms[name] / whole
        found.append(StageTime(name, timings_ms[name], Bar(name, round(x, 2), round(width, 2))))
        x += width
    return found
