"""The views of the inspection page: each reads the URL, makes its service calls, draws."""

from collections.abc import Mapping
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.http import require_safe

from search import entity_rows, services, unmatched
from search.errors import IndexUnavailable, InvalidRequest, NotFound, SearchError
from search.inspection import comparison, exports, form
from search.inspection.answer import answer, noun, web_address
from search.inspection.form import Parameters
from search.inspection.stories import Account, told
from search.models import Inspect
from search.types import SearchResult
from search.why import why

# A why-box takes an address or a path; no path of git is longer.
MAX_TARGET_CHARACTERS: Final = 5_000

_EXPORTS: Final = {"rows": exports.rows_csv, "others": exports.others_csv}


@require_safe
def inspect(request: HttpRequest) -> HttpResponse:
    """The page: the form and, once a query is given, the answer and how it came about."""
    if address := form.tidy(request.GET):
        return redirect(f"{request.path}?{address}")
    given = form.parameters(request.GET)
    asked = request.GET.get(form.WHY, "").strip()[:MAX_TARGET_CHARACTERS]
    context, result = _search(request, given)
    status = context.pop("status")
    if result is not None:
        context |= {
            "answer": answer(result),
            "story": _story(result, asked),
            "asked": asked,
            "against": form.against(given, request.GET),
            "curl": exports.curl(request.build_absolute_uri(reverse("search")), given),
            "json_url": f"{reverse('search')}?{given.query_string}",
        }
    return _page(request, "inspect.html", "Inspect a search", context, status)


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Two settings of one query side by side."""
    if address := form.tidy(request.GET):
        return redirect(f"{request.path}?{address}")
    given = form.parameters(request.GET)
    context, one = _search(request, given)
    status = context.pop("status")
    others = form.against(given, request.GET)
    context["against"] = others
    if one is not None:
        other_given = form.against_parameters(given, others)
        found, other = _search(request, other_given)
        if other is None:
            status = found["status"]
            context |= {name: found[name] for name in ("failure", "errors", "has_errors")}
            context["against"] = form.with_errors(others, found["by_field"])
        else:
            titles = (_settings(given), _settings(other_given))
            sides, overlaps, same = comparison.sides(answer(one), answer(other), titles)
            context |= {"sides": sides, "overlaps": overlaps, "same": same}
    return _page(request, "compare.html", "Compare two settings", context, status)


@require_safe
def rows(request: HttpRequest) -> HttpResponse:
    """All rows of one entity in the index, whatever a search found of them."""
    key, status = request.GET.get("key", ""), 200
    context: dict[str, Any] = {"key": key, "noun": noun(key), "given": form.parameters(request.GET)}
    cursor = request.GET.get("cursor") or None
    try:
        found = entity_rows.entity_rows(key=key, cursor=cursor)
        context["rows"] = [(row, web_address(row.url)) for row in found.rows]
        context["next_cursor"] = found.next_cursor
    except InvalidRequest as error:
        status, context["failure"] = 400, f"{error.field}: {error}"
    except NotFound as error:
        status, context["failure"] = 404, str(error)
    except IndexUnavailable as error:
        status, context["failure"] = 503, str(error)
    return _page(request, "rows.html", "All rows of one entity", context, status)


@require_safe
def download(request: HttpRequest) -> HttpResponse:
    """The rows of the pool, or the rows folded under results, as CSV."""
    given = form.parameters(request.GET)
    part = request.GET.get("part", "rows")
    parsed, _ = form.read(given)
    if parsed is None or part not in _EXPORTS:
        return redirect(f"{reverse('admin:search_inspect_changelist')}?{given.query_string}")
    try:
        result = services.search(request=parsed)
    except SearchError as error:
        return HttpResponse(str(error), status=503, content_type="text/plain; charset=utf-8")
    response = HttpResponse(_EXPORTS[part](result), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="search-{part}.csv"'
    response["Cache-Control"] = "no-store"
    return response


def _search(request: HttpRequest, given: Parameters) -> tuple[dict[str, Any], SearchResult | None]:
    """Return what every page with a form shows, and the result where there is one."""
    parsed, errors = form.read(given) if given.pairs or request.GET else (None, {})
    result, failure, status = None, "", 400 if errors else 200
    if parsed is not None:
        try:
            result = services.search(request=parsed)
        except SearchError as error:
            failure, status = str(error), 503
    in_sight, more = form.controls(given, errors)
    context = {
        "given": given,
        "in_sight": in_sight,
        "more": more,
        "more_open": any(c.errors or c.is_set for c in more),
        "errors": errors.get("", []),
        "by_field": errors,
        "has_errors": bool(errors),
        "repositories": _repositories(),
        "failure": failure,
        "status": status,
    }
    return context, result


def _story(result: SearchResult, asked: str) -> Account | None:
    """Return the answer of the why-box; None where nothing was asked or the index went away."""
    try:
        return told(why(result=result, text=asked)) if asked else None
    except IndexUnavailable:
        return None


def _repositories() -> tuple[str, ...]:
    try:
        return unmatched.known_repositories()
    except IndexUnavailable:
        return ()


def _settings(given: Parameters) -> str:
    """Name the settings of one side of a comparison."""
    rerank = "off" if given.first("rerank") == "false" else "on"
    sort = given.first("sort", "relevance")
    by = "" if sort == "relevance" else f", {sort}"
    return f"{given.first('fusion', 'rrf')}, rerank {rerank}{by}"


def _page(
    request: HttpRequest, template: str, title: str, context: Mapping[str, Any], status: int
) -> TemplateResponse:
    opts = Inspect._meta
    return TemplateResponse(
        request,
        f"search/admin/{template}",
        {
            **admin.site.each_context(request),
            # The page needs the width; the way back is in the breadcrumbs.
            "is_nav_sidebar_enabled": False,
            "title": title,
            "opts": opts,
            "page_name": capfirst(opts.verbose_name_plural),
            **context,
        },
        status=status,
    )
