"""How an answer is written: every field with its type, from the dataclasses of the service."""

from datetime import UTC
from typing import Any, Final, Literal

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from search import types

# The fields that only rows of a type have.
TYPE_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "issue": (),
    "pull_request": (),
    "release": ("tag_name",),
    "doc": ("doc_path",),
    "wiki_doc": ("wiki_path", "wiki_extension"),
    "diff": ("commit_sha", "file_path", "file_status", "commit_date", "commit_author"),
    "issue_comment": ("author", "comment_id"),
    "pr_review": ("author", "review_id"),
    "pr_review_comment": ("author", "comment_id", "file_path", "line", "commit_sha"),
}
_ALL_TYPE_FIELDS: Final = frozenset(name for names in TYPE_FIELDS.values() for name in names)


def _time(source: str | None, help_text: str, **options: Any) -> serializers.DateTimeField:
    return serializers.DateTimeField(
        source=source, default_timezone=UTC, allow_null=True, help_text=help_text, **options
    )


def _of_ranker(what: str, ranker: str) -> dict[str, Any]:
    """Options of a field that is null where the ranker did not hold the row."""
    return {
        "source": f"ranked.{what}.{ranker}",
        "allow_null": True,
        "help_text": f"The row's place in `{ranker}`, from 1; null where it did not hold the row."
        if what == "ranks"
        else f"The row's score in `{ranker}`; comparable only within it.",
    }


class Snippet(serializers.Serializer[types.Snippet]):
    """A passage of the row's text."""

    text = serializers.CharField(allow_blank=True)
    marks = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="`[start, end)` of the query's words in `text`, counted in code points.",
    )


class SameEntityRow(serializers.Serializer[types.FoldedRow]):
    """A reference to a row that was folded under a result."""

    type = serializers.ChoiceField(source="row.type", choices=types.ROW_TYPES)
    url = serializers.URLField()
    commit_sha = serializers.CharField(
        source="row.commit_sha", required=False, help_text="Of diffs only."
    )
    updated_at = _time("row.updated_at", "Null where the source had no time.")
    score = serializers.FloatField(source="ranked.score", help_text="Fused score.")

    def to_representation(self, instance: types.FoldedRow) -> dict[str, Any]:
        """Return the reference; `commit_sha` is left out of what is not a diff."""
        value: dict[str, Any] = super().to_representation(instance)
        if instance.row.type != "diff":
            del value["commit_sha"]
        return value


class SameEntity(serializers.Serializer[types.Hit]):
    """The rows that point at the same entity as the result."""

    count = serializers.SerializerMethodField(help_text="The result included: at least 2.")
    others = SameEntityRow(many=True, help_text="In final order.")

    def get_count(self, hit: types.Hit) -> int:
        """Return the number of rows of the entity."""
        return 1 + len(hit.others)


class SearchHit(serializers.Serializer[types.Hit]):
    """One entity, shown by its best-placed row. The fields of other types are left out."""

    number = serializers.IntegerField(
        source="row.number", help_text="Of the issue or pull request; 0 = none."
    )
    title = serializers.CharField(allow_blank=True)
    state = serializers.CharField(source="row.state", allow_blank=True)
    type = serializers.ChoiceField(source="row.type", choices=types.ROW_TYPES)
    labels = serializers.ListField(source="row.labels", child=serializers.CharField())
    milestone = serializers.CharField(source="row.milestone", allow_blank=True)
    assignees = serializers.ListField(source="row.assignees", child=serializers.CharField())
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
    url = serializers.URLField()
    updated_at = _time("row.updated_at", "Null where the source had no time.")
    repo = serializers.CharField(source="row.repo")
    entity_key = serializers.CharField(help_text="What the result's rows were folded by.")
    snippet = Snippet()
    same_entity = SameEntity(
        source="*", required=False, help_text="Only where at least one row was folded."
    )

    tag_name = serializers.CharField(source="row.tag_name", required=False)
    doc_path = serializers.CharField(source="row.doc_path", required=False)
    wiki_path = serializers.CharField(source="row.doc_path", required=False)
    wiki_extension = serializers.CharField(source="row.wiki_extension", required=False)
    commit_sha = serializers.CharField(source="row.commit_sha", required=False)
    file_path = serializers.CharField(source="row.file_path", required=False)
    file_status = serializers.CharField(source="row.file_status", required=False)
    commit_date = _time("row.commit_date", "When the commit was made.", required=False)
    commit_author = serializers.CharField(source="row.commit_author", required=False)
    author = serializers.CharField(source="row.author", required=False)
    comment_id = serializers.IntegerField(source="row.comment_id", required=False)
    review_id = serializers.IntegerField(source="row.review_id", required=False)
    line = serializers.IntegerField(source="row.line", required=False)

    def to_representation(self, instance: types.Hit) -> dict[str, Any]:
        """Return the result with the fields of its type, and `same_entity` if it has others."""
        value: dict[str, Any] = super().to_representation(instance)
        for name in _ALL_TYPE_FIELDS.difference(TYPE_FIELDS.get(instance.row.type, ())):
            del value[name]
        if not instance.others:
            del value["same_entity"]
        if not instance.row.wiki_extension:
            value.pop("wiki_extension", None)
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
    """The answer to a search: at most `top_k` results, each a distinct entity."""

    count = serializers.SerializerMethodField(help_text="Number of results.")
    mode = serializers.SerializerMethodField(help_text="Always `search`.")
    fusion = serializers.ChoiceField(source="request.fusion", choices=types.FUSIONS)
    sort = serializers.ChoiceField(source="request.sort", choices=types.SORTS)
    dense_candidates = serializers.SerializerMethodField(help_text="Rows that vectors brought.")
    sparse_candidates = serializers.SerializerMethodField(help_text="Rows that words brought.")
    filters_unmatched = UnmatchedFilter(many=True)
    rerank_requested = serializers.BooleanField()
    rerank_applied = serializers.BooleanField()
    since = _time("request.filters.since", "The filter, as understood.")
    until = _time("request.filters.until", "The filter, as understood.")
    graph_expanded = serializers.SerializerMethodField(
        help_text="Whether pages that results mention were added: not yet possible."
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
    results = SearchHit(source="hits", many=True)

    def to_representation(self, instance: types.SearchResult) -> dict[str, Any]:
        """Return the answer; `incomplete_reason` is left out where nothing is missing."""
        value: dict[str, Any] = super().to_representation(instance)
        if instance.complete:
            value.pop("incomplete_reason", None)
        return value

    def get_count(self, result: types.SearchResult) -> int:
        """Return the number of results."""
        return len(result.hits)

    def get_mode(self, _result: types.SearchResult) -> Literal["search"]:
        """Return the mode: scans of the newest rows will have another."""
        return "search"

    def get_dense_candidates(self, result: types.SearchResult) -> int:
        """Return the number of rows that the dense ranker brought."""
        return result.trace.candidates.get("dense", 0)

    def get_sparse_candidates(self, result: types.SearchResult) -> int:
        """Return the number of rows that the sparse ranker brought."""
        return result.trace.candidates.get("sparse", 0)

    def get_graph_expanded(self, _result: types.SearchResult) -> bool:
        """Return whether mentioned pages were added."""
        return False

    def get_graph_neighbors(self, _result: types.SearchResult) -> int:
        """Return how many mentioned pages were added."""
        return 0

    @extend_schema_field(Extent)
    def get_pool(self, result: types.SearchResult) -> dict[str, int]:
        """Return the size of the pool."""
        return {"rows": len(result.trace.pool), "entities": result.trace.pool_entities}

    @extend_schema_field(Extent)
    def get_slots(self, result: types.SearchResult) -> dict[str, int]:
        """Return the size of the first `top_k` places of the pool."""
        rows = result.trace.pool[: result.request.top_k]
        return {"rows": len(rows), "entities": result.trace.slot_entities}
