"""The REST adapter's two ends: what comes in becomes a SearchRequest, a SearchResult goes out."""

from rest_framework.exceptions import ValidationError

from search.serializers.listing import EntityResponse, ListedRow, ScanResponse, to_response
from search.serializers.request import (
    EntityParameters,
    NoParameters,
    Parameters,
    SearchParameters,
    messages_by_field,
    to_request,
    validated,
)
from search.serializers.response import SearchResponse

__all__ = [
    "EntityParameters",
    "EntityResponse",
    "ListedRow",
    "NoParameters",
    "Parameters",
    "ScanResponse",
    "SearchParameters",
    "SearchResponse",
    "ValidationError",
    "messages_by_field",
    "to_request",
    "to_response",
    "validated",
]
