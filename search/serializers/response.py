"""How an answer is written: every field with its type, from the dataclasses of the service."""

from typing import Any, Literal

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from search import types
from search.serializers.row import RowFields, time_field


def _of_ranker(what: str, ranker: str) -> dict[str, Any]:
    """Options of a field that is null where the ranker did not hold the row."""
    return {
        "source": f"ranked.{what}.{ranker}",
        "allow_null": True,
        "help_text": f"The row's place in `{ranker}`, from 1; null where it did not hold the row."
        if what == "ranks"
        else f"The row's score in `{ranker}`; comparable only within it.",
    }


class SameEntityRow(serializers.Serializer[types.FoldedRow]):
    """A reference to a row that was folded under a result."""

    type = serializers.ChoiceField(source="row.type", choices=types.ROW_TYPES)
    url = serializers.URLField()
    commit_sha = serializers.CharField(
        source="row.commit_sha", required=False, help_text="Of diffs only."
    )
    updated_at = time_field("row.updated_at", "Null where the source had no time.")
    score = serializers.FloatField(source="ranked.score", help_text="Fused score.")

    def to_representation(self, instance: types.FoldedRow) -> dict[str, Any]:
        """Return the reference; `commit_sha` is left out of what is not a diff."""
        value: dict[str, Any] = super().to_representation(instance)
        if instance.row.type != "diff":
            del value["commit_sha"]
        return value


class SameEntity(serializers.Serializer[types.Hit | types.Neighbour]):
    """The rows that point at the same entity as the result."""

    count = serializers.SerializerMethodField(help_text="The result included: at least 2.")
    others = SameEntityRow(many=True, help_text="In final order.")

    def get_count(self, shown: types.Hit | types.Neighbour) -> int:
        """Return the number of rows of the entity."""
        return 1 + len(shown.others)


class SearchHit(RowFields[types.Hit | types.Neighbour]):
    """One entity, shown by its best-placed row; or a neighbour of the results, after them.

    A neighbour has `graph_hop`, and no ranker held it: its score is 0.
    """

    score = serializers.FloatField(source="ranked.score", help_text="Fused score.")
    dense_score = serializers.FloatField(**_of_ranker("scores", "dense"))
    sparse_score = serializers.FloatField(**_of_ranker("scores", "sparse"))
    title_score = serializers.FloatField(**_of_ranker("scores", "title"))
    dense_rank = serializers.IntegerField(**_of_ranker("ranks", "dense"))
    sparse_rank = serializers.IntegerField(**_of_ranker("ranks", "sparse"))
    title_rank = serializers.IntegerField(**_of_ranker("ranks", "title"))
    rerank_score = serializers.FloatField(
        source="ranked.rerank_score", allow_null=True, help_text="Null where it was not reranked."
    )
    same_entity = SameEntity(
        source="*", required=False, help_text="Only where at least one row was folded."
    )
    graph_hop = serializers.IntegerField(
        source="hop", required=False, help_text="Of neighbours only: how many mentions away."
    )
    graph_from = serializers.CharField(
        source="source_name",
        required=False,
        help_text="Of neighbours only: slug or path of the result it was reached from; the "
        "vector_id of a result without one.",
    )

    def to_representation(self, instance: types.Hit | types.Neighbour) -> dict[str, Any]:
        """Return the result, with `same_entity` if it has others."""
        value = super().to_representation(instance)
        if not instance.others:
            del value["same_entity"]
        return value


class Extent(serializers.Serializer[Any]):
    """How many rows, and how many distinct entities they are."""

    rows = serializers.IntegerField()
    entities = serializers.IntegerField()


class DegradedStage(serializers.Serializer[Any]):
    """A stage that could not run as asked."""

    stage = serializers.CharField()
    reason = serializers.CharField()


class UnmatchedFilter(serializers.Serializer[Any]):
    """A filter that matches no row of the index by itself."""

    filter = serializers.CharField()
    value = serializers.CharField()
    suggestions = serializers.ListField(
        child=serializers.CharField(), help_text="Near names that some row has."
    )


class SearchResponse(serializers.Serializer[types.SearchResult]):
    """The answer to a search: at most `top_k` results, each a distinct entity, then neighbours."""

    count = serializers.SerializerMethodField(help_text="Number of results, neighbours included.")
    mode = serializers.SerializerMethodField(help_text="`search`: the query has text.")
    fusion = serializers.ChoiceField(source="request.fusion", choices=types.FUSIONS)
    sort = serializers.ChoiceField(source="request.sort", choices=types.SORTS)
    dense_candidates = serializers.SerializerMethodField(help_text="Rows that vectors brought.")
    sparse_candidates = serializers.SerializerMethodField(help_text="Rows that words brought.")
    filters_unmatched = UnmatchedFilter(many=True)
    rerank_requested = serializers.BooleanField()
    rerank_applied = serializers.BooleanField()
    since = time_field("request.filters.since", "The filter, as understood.")
    until = time_field("request.filters.until", "The filter, as understood.")
    graph_expanded = serializers.SerializerMethodField(
        help_text="Whether pages that results mention, or that mention them, were asked for."
    )
    graph_neighbors = serializers.SerializerMethodField(help_text="How many were added.")
    pool = serializers.SerializerMethodField(help_text="All rows that the rankers brought.")
    slots = serializers.SerializerMethodField(
        help_text="The first `top_k` rows before the collapse: the duplication it removed."
    )
    complete = serializers.BooleanField(help_text="`top_k` entities came back, or no more exist.")
    incomplete_reason = serializers.CharField(required=False, help_text="Only when incomplete.")
    degraded = DegradedStage(many=True, help_text="Stages that could not run, and why.")
    engines = serializers.DictField(
        source="trace.engines", child=serializers.CharField(), help_text="What each ranker used."
    )
    timings_ms = serializers.DictField(
        source="trace.timings_ms", child=serializers.FloatField(), help_text="By stage."
    )
    results = SearchHit(source="shown", many=True, help_text="Best first; then neighbours.")

    def to_representation(self, instance: types.SearchResult) -> dict[str, Any]:
        """Return the answer; `incomplete_reason` is left out where nothing is missing."""
        value: dict[str, Any] = super().to_representation(instance)
        if instance.complete:
            value.pop("incomplete_reason", None)
        return value

    def get_count(self, result: types.SearchResult) -> int:
        """Return the number of results."""
        return len(result.shown)

    def get_mode(self, _result: types.SearchResult) -> Literal["search"]:
        """Return the mode: a scan has another."""
        return "search"

    def get_dense_candidates(self, result: types.SearchResult) -> int:
        """Return the number of rows that the dense ranker brought."""
        return result.trace.candidates.get("dense", 0)

    def get_sparse_candidates(self, result: types.SearchResult) -> int:
        """Return the number of rows that the sparse ranker brought."""
        return result.trace.candidates.get("sparse", 0)

    def get_graph_expanded(self, result: types.SearchResult) -> bool:
        """Return whether neighbours were asked for."""
        return result.request.graph_expand

    def get_graph_neighbors(self, result: types.SearchResult) -> int:
        """Return how many neighbours were added as results."""
        return len(result.neighbours)

    @extend_schema_field(Extent)
    def get_pool(self, result: types.SearchResult) -> dict[str, int]:
        """Return the size of the pool."""
        return {"rows": len(result.trace.pool), "entities": result.trace.pool_entities}

    @extend_schema_field(Extent)
    def get_slots(self, result: types.SearchResult) -> dict[str, int]:
        """Return the size of the first `top_k` places of the pool."""
        rows = result.trace.pool[: result.request.top_k]
        return {"rows": len(rows), "entities": result.trace.slot_entities}
