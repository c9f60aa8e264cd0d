"""The API described: what OpenAPI says beyond what the serializers know."""

from typing import Any, Final

from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    PolymorphicProxySerializer,
    extend_schema,
)
from rest_framework import serializers

from search.serializers import (
    EntityParameters,
    EntityResponse,
    ListedRow,
    ScanResponse,
    SearchParameters,
    SearchResponse,
)

EXAMPLES: Final[dict[str, Any]] = {
    "query": "when was the single-round limit introduced",
    "repo": "octo-org/octo-repo",
    "type": "diff",
    "state": "closed",
    "labels": ["bug", "search"],
    "milestone": "v1.2",
    "assignee": "octocat",
    "since": "2026-01-01T00:00:00Z",
    "until": "2026-02-01T00:00:00+09:00",
    "top_k": 10,
    "fusion": "rrf",
    "rerank": True,
    "sort": "relevance",
    "include_content": False,
    "graph_expand": False,
    "graph_hops": 1,
    "page": "WyIyMDI2LTAxLTMxVDA5OjAwOjAwKzAwOjAwIiwiaTphIl0:1vZxyz:c2lnbmF0dXJl",
}
_ENTITY_EXAMPLES: Final[dict[str, Any]] = {
    "key": "file:octo-org/octo-repo:docs/limits.md",
    "cursor": EXAMPLES["page"],
    "limit": 50,
}

# No NUL, which PostgreSQL's text does not hold; and, but for the query, not blank.
_QUERY_PATTERN: Final = r"^[^\u0000]*$"
_TEXT_PATTERN: Final = r"^[^\u0000]*[^\s\u0000][^\u0000]*$"
_TEXTS: Final = ("repo", "milestone", "assignee", "page", "cursor")


class TokenScheme(KnoxTokenScheme):  # type: ignore[no-untyped-call]
    """`Authorization: Token …`."""

    target_class = "search.authentication.TokenAuthentication"
    name = "token"


class ApiError(serializers.Serializer[Any]):
    """What is wrong."""

    code = serializers.CharField(help_text="A word for programs.")
    detail = serializers.CharField(help_text="A sentence for people.")
    attr = serializers.CharField(allow_null=True, help_text="The parameter, if one is to blame.")


class ErrorResponse(serializers.Serializer[Any]):
    """Why a request was not answered; every mistake of its parameters at once."""

    type = serializers.ChoiceField(choices=("validation_error", "client_error", "server_error"))
    errors = ApiError(many=True)  # type: ignore[assignment]  # the name is drf-standardized-errors'


_ERRORS: Final = {
    400: "A parameter is wrong, unknown or repeated, or the request cannot be read.",
    401: "The token or the session is missing, wrong or expired.",
    403: "The session's request lacks its CSRF token.",
    404: "The index holds no such thing.",
    406: "The answer is JSON, and the request accepts none.",
    415: "The body is not `application/json`.",
    429: "Too many requests; `Retry-After` says how many seconds to wait.",
    500: "A fault of the server.",
    503: "The index, or the only ranker that the request allows, is not available.",
}
_ALWAYS: Final = frozenset(_ERRORS).difference({404, 415})


def _responses(answer: Any, *more: int) -> dict[int, Any]:
    errors = {
        status: OpenApiResponse(ErrorResponse, description=_ERRORS[status])
        for status in sorted({*_ALWAYS, *more})
    }
    return {200: answer, **errors}


_ANSWER: Final = PolymorphicProxySerializer(
    component_name="Answer",
    serializers={"search": SearchResponse, "scan": ScanResponse},
    resource_type_field_name="mode",
)
_DESCRIPTION: Final = (
    "Finds rows by meaning, by words and by title, fuses the three rankings, and folds rows that "
    "point at the same thing, so that each result is a distinct entity. Without a query it scans: "
    "the rows of a window of time, newest first, each by itself."
)

describe_get = extend_schema(
    operation_id="search",
    summary="Search, with parameters in the query string",
    description=f"{_DESCRIPTION}\n\nLong queries belong in the body of a POST.",
    parameters=[SearchParameters],
    responses=_responses(_ANSWER),
    tags=["search"],
)
describe_post = extend_schema(
    operation_id="search_by_body",
    summary="Search, with parameters in a JSON body",
    description=_DESCRIPTION,
    request=SearchParameters,
    responses=_responses(_ANSWER, 415),
    tags=["search"],
)
describe_entity = extend_schema(
    operation_id="entity",
    summary="All rows of an entity",
    description="Rows that point at one thing, whatever a search found of them: newest first, "
    "rows without a time last.",
    parameters=[
        OpenApiParameter(
            "key",
            location=OpenApiParameter.PATH,
            description="`file:owner/name:path`, `thread:owner/name:number` or `row:id`, as "
            "`entity_key` has it; its slashes may stand as they are.",
        ),
        EntityParameters,
    ],
    responses=_responses(EntityResponse, 404),
    tags=["entities"],
)
describe_row = extend_schema(
    operation_id="row",
    summary="One row with its text",
    parameters=[OpenApiParameter("vector_id", location=OpenApiParameter.PATH)],
    responses=_responses(ListedRow, 404),
    tags=["entities"],
)


def refine(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Add examples and limits to the parameters; a post-processing hook of drf-spectacular."""
    body = result["components"]["schemas"]["SearchParameters"]
    body["additionalProperties"] = False
    for name, schema in body["properties"].items():
        schema["examples"] = [EXAMPLES[name]]
        _limit(name, schema)
    for operation in result["paths"]["/api/search"].values():
        for parameter in operation.get("parameters", ()):
            parameter["example"] = EXAMPLES[parameter["name"]]
            _limit(parameter["name"], parameter["schema"])
    for parameter in result["paths"]["/api/entities/{key}"]["get"]["parameters"]:
        parameter["example"] = _ENTITY_EXAMPLES[parameter["name"]]
        _limit(parameter["name"], parameter["schema"])
    return result


def _limit(name: str, schema: dict[str, Any]) -> None:
    if name == "query":
        schema["pattern"] = _QUERY_PATTERN
    if name in _TEXTS:
        schema |= {"minLength": 1, "pattern": _TEXT_PATTERN}
    if name == "labels":
        schema["items"] |= {"minLength": 1, "pattern": _TEXT_PATTERN}
