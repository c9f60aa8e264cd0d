"""Vectors as Vectorize takes and gives them: `id`, `values`, `metadata`, `namespace`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from indexer.errors import BadRecord
from indexer.records import Repairs, clean

Metadata = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of length 1, and what is known of its row."""

    id: str
    numbers: "np.ndarray[Any, np.dtype[np.float64]]"
    metadata: Metadata

    @property
    def dimensions(self) -> int:
        return len(self.numbers)


def parse_vector(record: Mapping[str, Any], repairs: Repairs) -> Vector:
    """Return the vector of a record, scaled to length 1; raises BadRecord."""
    identifier = record.get("id")
    if not isinstance(identifier, str) or not identifier:
        raise BadRecord("id is missing")
    metadata = record.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        repairs.count("metadata of a vector is no object: left out")
        metadata = None
    if record.get("namespace"):
        repairs.count("namespace of a vector: no column for it")
    return Vector(clean(identifier, repairs), _unit(record.get("values")), metadata or {})


def _unit(values: Any) -> "np.ndarray[Any, np.dtype[np.float64]]":
    if not isinstance(values, list) or not values:
        raise BadRecord("values is missing")
    if not all(type(value) in {int, float} for value in values):
        raise BadRecord("values must be numbers")
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except OverflowError:
        raise BadRecord("values holds NaN or infinity") from None
    if not np.isfinite(numbers).all():
        raise BadRecord("values holds NaN or infinity")
    largest = np.abs(numbers).max()
    if largest == 0:
        raise BadRecord("values are all 0: the vector has no direction")
    scaled = numbers / largest  # the square of a very large or small number would overflow
    unit: np.ndarray[Any, np.dtype[np.float64]] = scaled / np.linalg.norm(scaled)
    return unit
