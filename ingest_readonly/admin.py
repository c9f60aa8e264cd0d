"""Browse pages of the index: look, filter, search; nothing to add, change or delete."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

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
    list_per_page = 50
    actions = None

    def get_urls(self) -> list[URLPattern]:
        """Refuse any method that could write before a view of the admin sees it."""
        patterns = super().get_urls()
        for pattern in patterns:
            pattern.callback = _safe_methods_only(pattern.callback)
        return patterns

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(SearchDoc)
class SearchDocAdmin(BrowseAdmin):
    """The indexed rows."""

    list_display = ("vector_id", "type", "repo", "number", "title", "state", "updated_at")
    list_filter = ("type", "state")
    search_fields = ("vector_id", "repo", "title")
    exclude = ("embedding", "title_fts", "content_fts")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("embedding", "content_fts", "title_fts")


@admin.register(DocEdge)
class DocEdgeAdmin(BrowseAdmin):
    """Mentions between wiki pages."""

    list_display = ("src_slug", "dst_slug", "repo", "edge_kind", "updated_at")
    list_display_links = None
    search_fields = ("src_slug", "dst_slug", "repo")


@admin.register(IndexInfo)
class IndexInfoAdmin(BrowseAdmin):
    """What the index was built with."""

    list_display = ("source", "embedding_model", "dimensions", "written_at")
