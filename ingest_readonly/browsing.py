"""Browsing a million rows: pages without a count, searches and filters that an index answers."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import connections
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.functional import cached_property

from ingest_readonly.routers import INDEX

if TYPE_CHECKING:  # generic for the type checker only
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator

# Pages end here: to skip more rows takes longer than to narrow the list.
MOST_ROWS: Final = 10_000
# Characters of a title in a list; a title may be as long as a text.
TITLE_CHARACTERS: Final = 120
_LARGEST_NUMBER: Final = 2**31 - 1

# Rows of these types may be listed by state alone through the index on (type, state).
TYPES: Final = (
    "issue", "pull_request", "release", "doc", "wiki_doc", "diff", "issue_comment", "pr_review",
    "pr_review_comment",
)  # fmt: skip
STATES: Final = (
    "open", "closed", "published", "active", "APPROVED", "CHANGES_REQUESTED", "COMMENTED",
    "DISMISSED", "PENDING",
)  # fmt: skip

# Returns the repositories of the index: one probe of the index on (repo, …) for each.
_REPOSITORIES: Final = """
WITH RECURSIVE known AS (
    SELECT min(repo) AS value FROM search_docs
    UNION ALL
    SELECT (SELECT min(repo) FROM search_docs WHERE repo > value) FROM known
     WHERE value IS NOT NULL
) SELECT value FROM known WHERE value IS NOT NULL LIMIT %(limit)s
"""
MOST_REPOSITORIES: Final = 200


def repositories() -> list[str]:
    """Return up to MOST_REPOSITORIES names of repositories, sorted."""
    with connections[INDEX].cursor() as cursor:
        cursor.execute(_REPOSITORIES, {"limit": MOST_REPOSITORIES})
        return [name for (name,) in cursor.fetchall()]


class BoundedPaginator(_Paginator):
    """Counts no further than `most`, so a page costs the same on any number of rows."""

    most = MOST_ROWS

    @cached_property
    def count(self) -> int:
        """Return the number of rows, `most` at most."""
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[: self.most].count())

    @property
    def is_cut(self) -> bool:
        """Whether there may be more rows than the pages show."""
        return self.count >= self.most


class LightChangeList(ChangeList):
    """A list that reads the columns it shows: never a text or a vector."""

    def get_queryset(self, *args: Any, **kwargs: Any) -> QuerySet[Any]:
        """Return the rows of the list, with the columns that the admin names."""
        rows = super().get_queryset(*args, **kwargs)
        names = getattr(self.model_admin, "list_columns", ())
        return rows.only(*names) if names else rows


class Choice(admin.SimpleListFilter):
    """A filter with fixed words, so that no query has to find them."""

    words: tuple[str, ...] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the words."""
        return [(word, word) for word in self.words]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that have the chosen word."""
        return (
            queryset.filter(**{str(self.parameter_name): self.value()})
            if self.value()
            else queryset
        )


class ByType(Choice):
    """Rows of a type."""

    title = "type"
    parameter_name = "type"
    words = TYPES


class ByState(Choice):
    """Rows in a state."""

    title = "state"
    parameter_name = "state"
    words = STATES

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return them; every type is named, so that the index on (type, state) is of use."""
        rows = super().queryset(request, queryset)
        return rows.filter(type__in=TYPES) if self.value() else rows


class ByRepository(admin.SimpleListFilter):
    """Rows of a repository."""

    title = "repository"
    parameter_name = "repo"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the repositories that there are."""
        return [(name, name) for name in repositories()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the chosen one."""
        return queryset.filter(repo=self.value()) if self.value() else queryset


def shown_title(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the rows with the beginning of their title, which is all that a list reads of it."""
    annotated: QuerySet[Any] = rows.annotate(shown_title=Left("title", TITLE_CHARACTERS))
    return annotated


# --- Searching -----------------------------------------------------------------------------------

_REPO: Final = r"(?P<repo>[^/:\s#@]+/[^/:\s#@]+)"


def _repository(repo: str) -> Q:
    return Q(repo=repo)


def _number(number: str, repo: str = "") -> Q:
    value = int(number)
    if not 0 < value <= _LARGEST_NUMBER:
        return Q(pk__in=[])
    # The index is on (repo, number): without a repository, every one is named.
    where = Q(repo=repo) if repo else Q(repo__in=repositories())
    return where & Q(number=value) & ~Q(number=0)


def _path(path: str, repo: str = "") -> Q:
    where = Q(repo=repo) if repo else Q(repo__in=repositories())
    by_doc = Q(doc_path=path) & ~Q(doc_path="")
    by_file = Q(file_path=path) & ~Q(file_path="")
    return where & (by_doc | by_file)


def _commit(sha: str) -> Q:
    found = Q(commit_sha__startswith=sha.lower()) & ~Q(commit_sha="")
    return found | _number(sha) if sha.isdecimal() and len(sha) < len("2147483648") else found


# Form of a search → the rows it means. The first form that fits decides.
_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[..., Q]], ...]] = (
    (re.compile(rf"{_REPO}#(?P<number>[0-9]{{1,10}})", re.ASCII), _number),
    (re.compile(r"#?(?P<number>[0-9]{1,6})", re.ASCII), _number),
    (re.compile(r"#(?P<number>[0-9]{1,10})", re.ASCII), _number),
    (re.compile(r"(?P<sha>[0-9a-fA-F]{7,40})"), _commit),
    (re.compile(rf"{_REPO}:(?P<path>.+)", re.DOTALL), _path),
)
_REPO_ONLY: Final = re.compile(_REPO)


def search_rows(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Return the rows that `text` means: each reading is answered by an index of the table.

    `owner/name#12`, `#12`, seven or more digits of a commit, `owner/name:path`, a whole path, a
    repository, a row's id. A path needs no repository before it.
    """
    text = text.strip()
    if not text or "\0" in text:
        return rows if not text else rows.none()
    for pattern, meaning in _FORMS:
        if match := pattern.fullmatch(text):
            return rows.filter(meaning(**match.groupdict()))
    if _REPO_ONLY.fullmatch(text) and text in repositories():
        return rows.filter(_repository(text))
    return rows.filter(Q(pk=text) | _path(text))


def search_edges(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Return the edges from or to a page, named by its slug or its row's id."""
    text = text.strip()
    if "\0" in text:
        return rows.none()
    ends = ("src_vector_id", "dst_vector_id", "src_slug", "dst_slug")
    meant = Q()
    for end in ends:
        meant |= Q(**{end: text})
    return rows.filter(meant) if text else rows
