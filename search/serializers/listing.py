"""How rows outside a ranking are written: of a scan, of an entity, and one by itself."""

from typing import Any, Literal

from rest_framework import serializers

from search import types
from search.entity_rows import EntityRows
from search.serializers.response import DegradedStage, SearchResponse, UnmatchedFilter
from search.serializers.row import RowFields, time_field


class ListedRow(RowFields[types.ScannedRow]):
    """A row of the index. The fields of other types are left out."""

    created_at = time_field("row.created_at", "Null where the source had no time.")
    vector_id = serializers.CharField(
        source="row.vector_id", help_text="The row itself is at `/api/rows/{vector_id}`."
    )


class ScanResponse(serializers.Serializer[types.ScanResult]):
    """The answer to a scan: rows of a window of time, newest first, not collapsed."""

    count = serializers.SerializerMethodField(help_text="Number of results.")
    mode = serializers.SerializerMethodField(help_text="`scan`: the query is blank.")
    sort = serializers.ChoiceField(choices=types.SORTS, help_text="The order that applied.")
    since = time_field(None, "Start of the window that applied, inclusive.")
    until = time_field(None, "End of the window, exclusive; null: none.")
    truncated = serializers.BooleanField(help_text="Whether the window holds older rows.")
    next_page = serializers.CharField(
        allow_null=True, help_text="For the parameter `page`: leads to them. Null: there are none."
    )
    filters_unmatched = UnmatchedFilter(many=True)
    degraded = DegradedStage(many=True, help_text="Stages that could not run, and why.")
    timings_ms = serializers.DictField(child=serializers.FloatField(), help_text="By stage.")
    results = ListedRow(source="rows", many=True)

    def get_count(self, result: types.ScanResult) -> int:
        """Return the number of rows."""
        return len(result.rows)

    def get_mode(self, _result: types.ScanResult) -> Literal["scan"]:
        """Return the mode."""
        return "scan"


class EntityResponse(serializers.Serializer[EntityRows]):
    """Rows of one entity, newest first, rows without a time last."""

    entity_key = serializers.CharField(source="key")
    count = serializers.SerializerMethodField(help_text="Number of rows in this answer.")
    next_cursor = serializers.CharField(
        allow_null=True, help_text="For the parameter `cursor`: leads to older rows."
    )
    rows = ListedRow(many=True)

    def get_count(self, entity: EntityRows) -> int:
        """Return the number of rows in this answer."""
        return len(entity.rows)


def to_response(result: types.SearchResult | types.ScanResult) -> dict[str, Any]:
    """Return an answer of the service as it is written."""
    if isinstance(result, types.ScanResult):
        return dict(ScanResponse(result).data)
    return dict(SearchResponse(result).data)
