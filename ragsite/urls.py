"""Every URL of the project."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from ragsite import views

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("api/", include("search.urls")),
    path("health", views.live, name="health"),
    path("health/ready", views.ReadyView.as_view(), name="ready"),
    path("metrics", views.MetricsView.as_view(), name="metrics"),
]
