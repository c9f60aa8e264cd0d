"""The cache of query vectors: one computation a text, a bounded queue, failures that pass."""

import threading
from collections.abc import Iterator, Sequence

import pytest
from django.test import override_settings

from search.embedding import QueryVectors, unit, wait
from search.errors import EmbeddingError


class Slow:
    """Answers when it is let go; notes what it was asked."""

    model = "test"
    dimensions = 2

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()

    def embed_query(self, text: str) -> Sequence[float]:
        self.asked.append(text)
        self.go.wait(10)
        return [3.0, 4.0]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.embed_query(text) for text in texts]


@pytest.fixture
def slow() -> Iterator[Slow]:
    backend = Slow()
    yield backend
    backend.go.set()


def test_a_vector_comes_back_with_length_one(slow: Slow) -> None:
    slow.go.set()
    assert wait(QueryVectors(slow, size=2).submit("a")) == pytest.approx((0.6, 0.8))


def test_two_requests_for_one_text_share_one_computation(slow: Slow) -> None:
    vectors = QueryVectors(slow, size=2)
    first, second = vectors.submit("a"), vectors.submit("a")
    slow.go.set()
    assert wait(first) == wait(second)
    assert slow.asked == ["a"]


def test_only_the_beginning_of_a_long_query_is_embedded(slow: Slow) -> None:
    slow.go.set()
    wait(QueryVectors(slow, size=2).submit("x" * 8_000))
    assert [len(text) for text in slow.asked] == [600]


def test_a_full_queue_refuses_instead_of_growing(slow: Slow) -> None:
    vectors = QueryVectors(slow, size=50)
    with override_settings(SEARCH_EMBED_QUEUE=3):
        futures = [vectors.submit(str(n)) for n in range(10)]
    refused = [f for f in futures if f.done()]
    assert len(refused) == 7
    with pytest.raises(EmbeddingError, match="too many queries"):
        wait(refused[0])
    slow.go.set()
    assert wait(futures[0])
    assert wait(vectors.submit("9")), "a refusal is not kept"


def test_nobody_waits_longer_than_the_setting_says(slow: Slow) -> None:
    vectors = QueryVectors(slow, size=2)
    with (
        override_settings(SEARCH_EMBED_TIMEOUT_MS=50),
        pytest.raises(EmbeddingError, match="within 50 ms"),
    ):
        wait(vectors.submit("a"))


@pytest.mark.parametrize("vector", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], []])
def test_a_vector_without_direction_is_an_error(vector: list[float]) -> None:
    with pytest.raises(EmbeddingError, match="zero or not finite"):
        unit(vector)
