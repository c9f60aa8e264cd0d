"""Embedding by a server with OpenAI's API: OpenAI, Ollama, vLLM, TEI, Workers AI.

The setting SEARCH_EMBEDDER is `search.embedding_http.OpenAIEmbedder`; vectors come from
POST {SEARCH_EMBED_URL}/embeddings. https://platform.openai.com/docs/api-reference/embeddings
"""

import sys
from collections.abc import Sequence
from typing import Any, Final

from search import conf
from search.embedding import Vector, unit
from search.errors import EmbeddingError
from search.remote import Call, RemoteError, plain, post

# The longest a number of a vector is in JSON, "-0.0123456789012345678, ", and room for the rest.
_BYTES_PER_NUMBER: Final = 32
_BYTES_AROUND: Final = 100_000
_ATTEMPTS: Final = 3


class OpenAIEmbedder:
    """Vectors of unit length from a server; `model` and `dimensions` are settings.

    Raises EmbeddingError if they or the address are not set.
    """

    def __init__(self) -> None:
        self.model: str = _required("SEARCH_EMBED_MODEL")
        self.dimensions: int = _required("SEARCH_EMBED_DIMENSIONS")
        _required("SEARCH_EMBED_URL")

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, within SEARCH_EMBED_TIMEOUT_MS; raises EmbeddingError."""
        prefix = conf.get("SEARCH_EMBED_QUERY_PREFIX")
        return self._embed([prefix + text], conf.get("SEARCH_EMBED_TIMEOUT_MS"))[0]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the vectors of passages in their order; raises EmbeddingError if one is missing.

        They are sent SEARCH_EMBED_BATCH at a time, each batch with SEARCH_EMBED_BATCH_TIMEOUT_MS.
        """
        prefix = conf.get("SEARCH_EMBED_PASSAGE_PREFIX")
        size = max(1, conf.get("SEARCH_EMBED_BATCH"))
        milliseconds = conf.get("SEARCH_EMBED_BATCH_TIMEOUT_MS")
        vectors: list[Vector] = []
        for start in range(0, len(texts), size):
            batch = [prefix + text for text in texts[start : start + size]]
            vectors += self._embed(batch, milliseconds)
        return vectors

    def _embed(self, texts: list[str], milliseconds: int) -> list[Vector]:
        payload = {
            "model": self.model,
            "input": [plain(text) or " " for text in texts],  # OpenAI refuses an empty text
            "encoding_format": "float",
        }
        seconds = milliseconds / 1000
        call = Call(
            conf.get("SEARCH_EMBED_URL").rstrip("/") + "/embeddings",
            payload,
            seconds=seconds,
            attempt_seconds=seconds / 2,  # a lost answer leaves time for another try
            attempts=_ATTEMPTS,
            max_bytes=_BYTES_AROUND + len(texts) * self.dimensions * _BYTES_PER_NUMBER,
            api_key=conf.get("SEARCH_EMBED_API_KEY"),
        )
        try:
            answer = post(call)
        except RemoteError as error:
            raise EmbeddingError(f"The embedding server {error}.") from None
        return parse(answer, count=len(texts), dimensions=self.dimensions)


def parse(answer: object, *, count: int, dimensions: int) -> list[Vector]:
    """Return the unit vectors of an answer in the order of their `index`.

    Raises EmbeddingError unless there is exactly one a text, each of `dimensions` finite numbers.
    A server may send them in any order; one that leaves out the index is not trusted to keep it.
    """
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise EmbeddingError("The embedding server answered without a list of vectors.")
    if len(items) != count:
        raise EmbeddingError(
            f"The embedding server answered with {len(items)} vectors for {count} texts."
        )
    by_index = {item.get("index"): item.get("embedding") for item in items if _is_index(item)}
    if set(by_index) != set(range(count)):
        raise EmbeddingError("The embedding server did not number its vectors as the texts.")
    return [_vector(by_index[index], dimensions) for index in range(count)]


def _is_index(item: dict[str, Any]) -> bool:
    return type(item.get("index")) is int  # True and 1.0 are equal to 1 as keys


def _vector(value: object, dimensions: int) -> Vector:
    if isinstance(value, str):
        raise EmbeddingError("The embedding server answered in base64; it was asked for numbers.")
    if not isinstance(value, list) or len(value) != dimensions:
        size = f"{len(value)} numbers" if isinstance(value, list) else "no vector"
        raise EmbeddingError(
            f"The embedding server answered with {size}; SEARCH_EMBED_DIMENSIONS is {dimensions}."
        )
    if not all(_is_number(number) for number in value):
        raise EmbeddingError("The embedding server answered with a vector that is not all numbers.")
    return unit(value)


def _is_number(value: object) -> bool:
    """Whether `value` is a number that a float can hold; NaN and the infinities are not."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _required(name: str) -> Any:
    value = conf.get(name)
    if not value:
        raise EmbeddingError(f"{name} is not set.")
    return value
