"""The REST adapter's two ends: what comes in becomes a SearchRequest, a SearchResult goes out."""

from rest_framework.exceptions import ValidationError

from search.serializers.request import SearchParameters, messages_by_field, to_request
from search.serializers.response import SearchResponse

__all__ = [
    "SearchParameters",
    "SearchResponse",
    "ValidationError",
    "messages_by_field",
    "to_request",
]
