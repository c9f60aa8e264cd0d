"""Logging: one event a line, JSON in production, without queries, tokens or query strings."""

from typing import Any, Final

import structlog
from django.conf import settings
from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware as BaseRequestMiddleware

# Loggers that would write request lines or URLs, and with them what people search for.
_TALKATIVE: Final = {
    "django.server": "CRITICAL",  # the request line of runserver; RequestMiddleware logs requests
    "httpx2": "WARNING",
    "httpcore2": "WARNING",
}


class RequestMiddleware(BaseRequestMiddleware):
    """Logs the start and end of each request: method and path, never the query string."""

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        """Return the method and the path."""
        return f"{request.method} {request.path}"

    @classmethod
    def bind_ip(cls, request: HttpRequest) -> None:
        """Add the client's address to every event of the request."""
        structlog.contextvars.bind_contextvars(ip=client_address(request))


def client_address(request: HttpRequest) -> str:
    """Return the address of the client, as the nearest of `PROXY_COUNT` proxies saw it.

    Each proxy appends the address of its peer to X-Forwarded-For, so counting from the end leaves
    out whatever the client itself wrote there. The throttles of REST framework count the same way.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    count: int = settings.PROXY_COUNT
    if not count or not forwarded:
        return str(request.META.get("REMOTE_ADDR", ""))
    addresses = forwarded.split(",")
    return str(addresses[-min(count, len(addresses))].strip())


def configure(*, as_json: bool, level: int) -> dict[str, Any]:
    """Set structlog up and return the `LOGGING` setting that sends every logger through it."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.UnicodeDecoder(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "events": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": _renderers(as_json=as_json),
                "foreign_pre_chain": shared,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "events"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django gives these handlers of its own; everything goes to the root instead.
            "django": {"handlers": [], "propagate": True},
            **{name: {"handlers": [], "level": _TALKATIVE[name]} for name in _TALKATIVE},
        },
    }


def _renderers(*, as_json: bool) -> list[Any]:
    # Tracebacks without the local variables of their frames: those hold queries and tokens.
    drop_internals = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if not as_json:
        plain = structlog.dev.plain_traceback
        return [
            drop_internals,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain),
        ]
    tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return [
        drop_internals,
        structlog.processors.ExceptionRenderer(tracebacks),
        structlog.processors.JSONRenderer(),
    ]
