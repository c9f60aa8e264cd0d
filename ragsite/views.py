"""Pages about the service itself: is it alive, can it answer, what has it counted."""

import asyncio
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import add_never_cache_headers
from django_prometheus.exports import ExportToDjangoView
from drf_spectacular.utils import extend_schema
from health_check.views import HealthCheckView
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.views import APIView


def live(_request: HttpRequest) -> HttpResponse:
    """Answer that the process serves requests. Public, without detail."""
    response = JsonResponse({"status": "ok"})
    add_never_cache_headers(response)
    return response


class ReadyView(HealthCheckView):  # type: ignore[misc]  # it has no types
    """Answers whether both databases do: 200, or 503 naming the one that does not.

    The reasons go to the log: the page is public.
    """

    checks = (
        ("health_check.checks.Database", {"alias": "default"}),
        ("health_check.checks.Database", {"alias": "index"}),
    )

    async def get(self, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Return what each database's check found."""
        results = await asyncio.gather(*(check.get_result() for check in self.get_checks()))
        databases = {r.check.alias: "unavailable" if r.error else "ok" for r in results}
        ready = set(databases.values()) == {"ok"}
        return JsonResponse(
            {"status": "ok" if ready else "unavailable", "databases": databases},
            status=200 if ready else 503,
        )


class MetricsView(APIView):
    """Counters for Prometheus, for staff: by session, or by the token of a staff user."""

    permission_classes = [IsAdminUser]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Return all counters of this process."""
        page: HttpResponse = ExportToDjangoView(request._request)
        return page
