"""URLs under /api/. The schema and its page are public: they say nothing about the data."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

from search import views

urlpatterns = [
    path("search", views.SearchView.as_view(), name="search"),
    # Keys and ids hold slashes and colons.
    path("entities/<path:key>", views.EntityView.as_view(), name="entity"),
    path("rows/<path:vector_id>", views.RowView.as_view(), name="row"),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", views.DocsView.as_view(), name="docs"),
    re_path(r"", views.NothingView.as_view()),
]
