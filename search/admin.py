"""The inspection page in the admin: its permission, its place in the list of applications."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from search.inspection import views
from search.models import Inspect

PERMISSION: Final = "search.inspect_search"

if TYPE_CHECKING:  # generic for the type checker only
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


def _permitted(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view so that only users with the permission reach it."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.has_perm(PERMISSION):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded


@admin.register(Inspect)
class InspectAdmin(_ModelAdmin):
    """Has no rows: where the list of rows would be, there is the inspection page."""

    def get_urls(self) -> list[URLPattern]:
        """Return the page's views; none of the admin's own, which would look for a table."""
        pages = (
            ("", views.inspect, "changelist"),
            ("compare/", views.compare, "compare"),
            ("rows/", views.rows, "rows"),
            ("csv/", views.download, "csv"),
        )
        return [
            path(route, self.admin_site.admin_view(_permitted(view)), name=f"search_inspect_{name}")
            for route, view, name in pages
        ]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the page is listed for the user."""
        return request.user.has_perm(PERMISSION)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether the application is listed for the user."""
        return request.user.has_perm(PERMISSION)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: there is nothing to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: there is nothing to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: there is nothing to delete."""
        return False
