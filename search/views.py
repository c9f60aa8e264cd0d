"""The REST endpoints: read a request, make one call into a service, write the answer."""

from collections.abc import Mapping
from typing import Any, Final, cast

from csp.decorators import csp_update
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView
from drf_standardized_errors.handler import ExceptionHandler as StandardExceptionHandler
from rest_framework.exceptions import (
    APIException,
    ErrorDetail,
    ParseError,
    ValidationError,
)
from rest_framework.exceptions import NotFound as NotFoundResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from search import entity_rows, services
from search.errors import IndexUnavailable, InvalidRequest, NotFound, RankerUnavailable, SearchError
from search.schema import describe_entity, describe_get, describe_post, describe_row
from search.serializers import (
    EntityParameters,
    EntityResponse,
    ListedRow,
    NoParameters,
    Parameters,
    to_request,
    to_response,
    validated,
)
from search.serializers.wire import StrictJSONParser, from_query_string

# The code of each error that is not the client's fault and may pass.
_UNAVAILABLE: Final[dict[type[SearchError], str]] = {
    RankerUnavailable: "ranker_unavailable",
    IndexUnavailable: "index_unavailable",
}


class SearchView(APIView):
    """Search or scan, with parameters in the query string or in a JSON body."""

    # No OPTIONS: it would repeat the schema in another form.
    http_method_names = ["get", "head", "post"]
    parser_classes = [StrictJSONParser]

    @describe_get
    def get(self, request: Request) -> Response:
        """Search for what the query string asks."""
        if request.META.get("CONTENT_LENGTH") not in {None, "", "0"}:
            raise ParseError("A GET takes its parameters in the query string, not in a body.")
        return self._answer(from_query_string(_query_string(request)))

    @describe_post
    def post(self, request: Request) -> Response:
        """Search for what the JSON body asks."""
        if _query_string(request):
            raise ParseError("A POST takes its parameters in the body, not in the query string.")
        return self._answer(cast(dict[str, object], request.data))

    def _answer(self, parameters: Mapping[str, object]) -> Response:
        result = services.answer(request=to_request(parameters))
        return Response(to_response(result))


class EntityView(APIView):
    """All rows of one entity."""

    http_method_names = ["get", "head"]

    @describe_entity
    def get(self, request: Request, key: str) -> Response:
        """Return rows of the entity `key`."""
        parameters = _parameters(request, EntityParameters)
        rows = entity_rows.entity_rows(
            key=key, cursor=parameters.get("cursor"), limit=parameters["limit"]
        )
        return Response(EntityResponse(rows).data)


class RowView(APIView):
    """One row."""

    http_method_names = ["get", "head"]

    @describe_row
    def get(self, request: Request, vector_id: str) -> Response:
        """Return the row `vector_id` with its text."""
        _parameters(request, NoParameters)
        return Response(ListedRow(entity_rows.row(vector_id=vector_id)).data)


class NothingView(APIView):
    """Any other address below /api/: an answer that a program can read."""

    authentication_classes = []
    permission_classes = []
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse, whatever the method."""
        super().initial(request, *args, **kwargs)
        raise NotFoundResponse("Nothing is at this address; /api/docs lists those of the API.")


def _query_string(request: Request) -> str:
    return str(request.META.get("QUERY_STRING", ""))


def _parameters(request: Request, kind: type[Parameters]) -> dict[str, Any]:
    """Return the parameters of a query string; raises ValidationError or ParseError."""
    return validated(kind, from_query_string(_query_string(request), kind))


# Swagger UI draws its icons from data: URLs in its style sheet.
@method_decorator(csp_update({"img-src": ["data:"]}), name="dispatch")
class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI from our own static files, without inline scripts or styles."""

    template_name = "search/api_docs.html"


class Unavailable(APIException):
    """The service cannot answer at the moment."""

    status_code = 503


class ExceptionHandler(StandardExceptionHandler):
    """Gives the errors of the service, and of reading a request, their status."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        """Return the API exception that stands for `exc`, or `exc` itself."""
        if isinstance(exc, InvalidRequest):
            return ValidationError({exc.field: [ErrorDetail(str(exc), code="invalid")]})
        if isinstance(exc, NotFound):
            return NotFoundResponse(str(exc))
        for kind, code in _UNAVAILABLE.items():
            if isinstance(exc, kind):
                return Unavailable(str(exc), code=code)
        if isinstance(exc, (SuspiciousOperation, BadRequest)):
            return ParseError("The request cannot be read.")
        return super().convert_known_exceptions(exc)

    def report_exception(self, exc: APIException, response: Response) -> None:
        """Report a fault as Django does; that a database is away is no fault of the code."""
        if not isinstance(exc, Unavailable):
            super().report_exception(exc, response)
