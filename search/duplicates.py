"""How many of the first places are taken by things that already have one: before and after."""

from dataclasses import dataclass

from search.types import SearchResult


@dataclass(frozen=True, slots=True)
class Slots:
    """Places of an answer, and the distinct entities in them."""

    places: int
    distinct: int

    @property
    def share(self) -> float | None:
        """Distinct entities a place, from 0 to 1; None without places."""
        return self.distinct / self.places if self.places else None

    def __add__(self, other: "Slots") -> "Slots":
        return Slots(self.places + other.places, self.distinct + other.distinct)


def before(result: SearchResult) -> Slots:
    """Return the first `top_k` rows as they were before the collapse."""
    return Slots(min(result.request.top_k, len(result.trace.pool)), result.trace.slot_entities)


def after(result: SearchResult) -> Slots:
    """Return the results.

    Places that stayed empty count where the answer is incomplete: they would have been filled.
    """
    places = len(result.hits) if result.complete else result.request.top_k
    return Slots(places, len({hit.entity_key for hit in result.hits}))
