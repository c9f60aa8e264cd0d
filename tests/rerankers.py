"""Rerankers of the tests: what SEARCH_RERANKER may name."""

from collections.abc import Sequence


class Shortest:
    """The shorter a text, the better."""

    name = "shortest"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [-float(len(text)) for text in texts]
