"""The fields of a row of the index, however it was found."""

from datetime import UTC
from typing import Any, Final, TypeVar

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

CONTENT_SOURCES: Final = ("index", "github")

S = TypeVar("S", bound=types.Hit | types.Neighbour | types.ScannedRow)


def time_field(source: str | None, help_text: str, **options: Any) -> serializers.DateTimeField:
    """Return a field of a time in UTC, null where it is not known."""
    return serializers.DateTimeField(
        source=source, default_timezone=UTC, allow_null=True, help_text=help_text, **options
    )


class Snippet(serializers.Serializer[types.Snippet]):
    """A passage of the row's text."""

    text = serializers.CharField(allow_blank=True)
    marks = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="`[start, end)` of the query's words in `text`, counted in code points.",
    )


class RowFields(serializers.Serializer[S]):
    """What is shown of a row. The fields of other types are left out."""

    number = serializers.IntegerField(
        source="row.number", help_text="Of the issue or pull request; 0 = none."
    )
    title = serializers.CharField(allow_blank=True)
    state = serializers.CharField(source="row.state", allow_blank=True)
    type = serializers.ChoiceField(source="row.type", choices=types.ROW_TYPES)
    labels = serializers.ListField(source="row.labels", child=serializers.CharField())
    milestone = serializers.CharField(source="row.milestone", allow_blank=True)
    assignees = serializers.ListField(source="row.assignees", child=serializers.CharField())
    url = serializers.URLField()
    updated_at = time_field("row.updated_at", "Null where the source had no time.")
    repo = serializers.CharField(source="row.repo")
    entity_key = serializers.CharField(
        help_text="What the row points at; its other rows are at `/api/entities/{entity_key}`."
    )
    snippet = Snippet()

    tag_name = serializers.CharField(source="row.tag_name", required=False)
    doc_path = serializers.CharField(source="row.doc_path", required=False)
    wiki_path = serializers.CharField(source="row.doc_path", required=False)
    wiki_extension = serializers.CharField(source="row.wiki_extension", required=False)
    commit_sha = serializers.CharField(source="row.commit_sha", required=False)
    file_path = serializers.CharField(source="row.file_path", required=False)
    file_status = serializers.CharField(source="row.file_status", required=False)
    commit_date = time_field("row.commit_date", "When the commit was made.", required=False)
    commit_author = serializers.CharField(source="row.commit_author", required=False)
    author = serializers.CharField(source="row.author", required=False)
    comment_id = serializers.IntegerField(source="row.comment_id", required=False)
    review_id = serializers.IntegerField(source="row.review_id", required=False)
    line = serializers.IntegerField(source="row.line", required=False)

    content = serializers.CharField(
        required=False, allow_blank=True, help_text="The text, where it was asked for."
    )
    content_source = serializers.ChoiceField(
        choices=CONTENT_SOURCES,
        required=False,
        help_text="Where `content` is from: as indexed, up to 8,000 characters, or the whole file "
        "from GitHub as it is now.",
    )

    def to_representation(self, instance: S) -> dict[str, Any]:
        """Return the row with the fields of its type, and its content if it has been read."""
        value: dict[str, Any] = super().to_representation(instance)
        for name in _ALL_TYPE_FIELDS.difference(TYPE_FIELDS.get(instance.row.type, ())):
            del value[name]
        if not instance.row.wiki_extension:
            value.pop("wiki_extension", None)
        if instance.content is None:
            del value["content"], value["content_source"]
        return value
