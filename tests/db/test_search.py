"""The search over a real index: what each stage promises, seen from outside."""

import math

import pytest
from django.test.utils import override_settings

from search.services import search
from search.types import Filters, SearchRequest, SearchResult
from tests.postgres import TestIndex, row


def ask(query: str, **options: object) -> SearchResult:
    return search(request=SearchRequest(query, **options))  # type: ignore[arg-type]


def near(angle: float) -> list[float]:
    """A unit vector at an angle from the first axis."""
    return [math.cos(angle), math.sin(angle)]


def test_it_finds_a_row_by_its_words(index: TestIndex) -> None:
    index.load([row("i:1", number=1, title="Retry limit", content="Retry limit\n\nwhy one retry")])
    result = ask("retry limit", fusion="sparse_only")
    assert [hit.row.vector_id for hit in result.hits] == ["i:1"]
    assert dict(result.trace.engines) == {"sparse": "bm25", "title": "bm25"}
    assert result.degraded == ()
