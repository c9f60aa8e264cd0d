"""Two answers to one query, side by side: who moved where, and how much they have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from search.inspection.answer import Answer, Card
from search.places import entity_places

_DEPTHS: Final = (1, 3, 5, 10, 20, 50)


@dataclass(frozen=True, slots=True)
class Move:
    """A card and its place on the other side, None where the other side does not show it.

    `below` is its place there among all entities of the pool, None where not even the pool has it.
    """

    card: Card
    elsewhere: int | None
    below: int | None

    @property
    def by(self) -> int:
        """Places by which the other side has it lower: above zero is better here."""
        return (self.elsewhere or 0) - self.card.place

    @property
    def distance(self) -> int:
        return abs(self.by)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two answers."""

    title: str
    answer: Answer
    moves: list[Move]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Entities that both answers have among their first `depth`."""

    depth: int
    both: int

    @property
    def percent(self) -> float:
        return 100 * self.both / self.depth if self.depth else 0.0


def sides(
    one: Answer, other: Answer, titles: tuple[str, str]
) -> tuple[tuple[Side, Side], list[Overlap], int]:
    """Return the two sides, the overlap at some depths, and how many places are the same."""
    keys = [[card.hit.entity_key for card in answer.cards] for answer in (one, other)]
    left, right = (
        Side(title, here, _moves(here, there))
        for title, here, there in zip(titles, (one, other), (other, one), strict=True)
    )
    same = sum(a == b for a, b in zip(*keys, strict=False))
    return (left, right), _overlaps(keys[0], keys[1]), same


def _moves(here: Answer, there: Answer) -> list[Move]:
    places = entity_places(there.result)
    shown = len(there.cards)
    moves = []
    for card in here.cards:
        place = places.get(card.hit.entity_key)
        is_shown = place is not None and place <= shown
        moves.append(Move(card, place if is_shown else None, None if is_shown else place))
    return moves


def _overlaps(one: Sequence[str], other: Sequence[str]) -> list[Overlap]:
    longest = max(len(one), len(other))
    depths = dict.fromkeys([*(d for d in _DEPTHS if d < longest), longest])
    return [Overlap(d, len(set(one[:d]) & set(other[:d]))) for d in depths if d]
