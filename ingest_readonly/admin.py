"""Browse pages of the index: look, filter, search; nothing to add, change or delete."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin import ShowFacets
from django.core.exceptions import PermissionDenied
from django.db.models import F, Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from ingest_readonly.browsing import (
    TITLE_CHARACTERS,
    BoundedPaginator,
    ByRepository,
    ByState,
    ByType,
    LightChangeList,
    search_edges,
    search_rows,
    shown_title,
)
from ingest_readonly.models import DocEdge, IndexInfo, SearchDoc

if TYPE_CHECKING:  # generic for the type checker only
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


def _safe_methods_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view so that only GET, HEAD and OPTIONS reach it."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in {"GET", "HEAD", "OPTIONS"}:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded


class BrowseAdmin(_ModelAdmin):
    """An admin of rows that can only be read, fast on a million of them."""

    show_full_result_count = False  # a count of all rows reads all rows
    show_facets = ShowFacets.NEVER  # so would the counts beside the filters
    paginator = BoundedPaginator
    list_per_page = 50
    list_max_show_all = 0
    actions = None
    sortable_by = ()  # an index gives one order; any other would sort every row

    def get_urls(self) -> list[URLPattern]:
        """Refuse any method that could write before a view of the admin sees it."""
        patterns = super().get_urls()
        for pattern in patterns:
            pattern.callback = _safe_methods_only(pattern.callback)
        return patterns

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list over the whole width: it has many columns."""
        return super().changelist_view(
            request, {"is_nav_sidebar_enabled": False, **(extra_context or {})}
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LightChangeList]:
        """Return the list that reads only what it shows."""
        return LightChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: the ingest side writes."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: the ingest side writes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Return False: the ingest side writes."""
        return False


@admin.register(SearchDoc)
class SearchDocAdmin(BrowseAdmin):
    """The indexed rows."""

    list_columns = (
        "vector_id", "type", "repo", "number", "state", "updated_at", "commit_sha", "doc_path",
        "file_path", "tag_name",
    )  # fmt: skip
    list_display = ("type", "beginning", "repo", "thread", "commit", "state", "updated", "id")
    list_display_links = ("beginning",)
    list_filter = (ByType, ByState, ByRepository, "updated_at")
    search_fields = ("vector_id",)  # what is searched is in get_search_results
    search_help_text = (
        "owner/name, owner/name#12, #12, a commit (7 digits or more), a whole path, "
        "owner/name:path, or a row's id"
    )
    # As the index on (updated_at, vector_id) has it.
    ordering = (F("updated_at").desc(nulls_last=True), "vector_id")
    exclude = ("embedding", "title_fts", "content_fts")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows without vector and search text, the title cut in lists."""
        rows = super().get_queryset(request).defer(*self.exclude)
        return shown_title(rows)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that the text means, by an index."""
        return search_rows(queryset, search_term), False

    @admin.display(description="row", ordering=None)
    def id(self, row: SearchDoc) -> str:
        """Return the row's id."""
        return row.vector_id

    @admin.display(description="title")
    def beginning(self, row: Any) -> str:
        """Return the beginning of the row's title, or what else names it."""
        named = row.shown_title or row.doc_path or row.file_path or row.tag_name or row.vector_id
        return str(named)[:TITLE_CHARACTERS]

    @admin.display(description="number")
    def thread(self, row: SearchDoc) -> str:
        """Return the number of the issue or pull request."""
        return f"#{row.number}" if row.number else "–"

    @admin.display(description="updated")
    def updated(self, row: SearchDoc) -> str:
        """Return the time in UTC, to the minute."""
        return f"{row.updated_at:%Y-%m-%d %H:%M}" if row.updated_at else "–"

    @admin.display(description="commit")
    def commit(self, row: SearchDoc) -> str:
        """Return the commit, abbreviated."""
        return row.commit_sha[:7] or "–"


@admin.register(DocEdge)
class DocEdgeAdmin(BrowseAdmin):
    """Mentions between wiki pages."""

    list_display = ("src_slug", "dst_slug", "repo", "edge_kind", "updated_at")
    list_display_links = None
    list_filter = (ByRepository,)
    search_fields = ("src_slug",)  # what is searched is in get_search_results
    search_help_text = "A page's slug or its row's id, of either end"
    ordering = ("src_vector_id", "dst_vector_id")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the edges of a page."""
        return search_edges(queryset, search_term), False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> DocEdge | None:
        """Return None: an edge has no page of its own, for its key is both of its ends."""
        return None


@admin.register(IndexInfo)
class IndexInfoAdmin(BrowseAdmin):
    """What the index was built with."""

    list_display = ("source", "embedding_model", "dimensions", "written_at")
