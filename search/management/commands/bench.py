"""manage.py bench: latency of the bare scans, the service, the stages and the HTTP request."""

import logging
import statistics
import threading
import time
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast
from uuid import uuid4

import httpx2
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from knox.models import get_token_model
from rich.console import Console
from rich.table import Table

from ingest_readonly.models import SearchDoc
from search import services
from search.types import SearchRequest
from search.views import SearchView

Timings = dict[str, list[float]]
# The order of the report; stages that a search did not run are left out.
STAGES: Final = ("embed", "sparse", "title", "dense", "fuse", "rerank", "collapse", "hydrate")


class Command(BaseCommand):
    help = "Measure p50 and p95 on the loaded index, side by side in one run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--queries", type=Path, help="A file with one query a line.")
        parser.add_argument("--repeat", type=int, default=5, help="Rounds over the queries.")
        parser.add_argument("--top-k", type=int, default=10, help="Entities per search.")

    def handle(self, *args: Any, **options: Any) -> None:
        logging.disable(logging.INFO)  # a line for each request would be measured too
        queries = self._queries(options["queries"])
        timings: Timings = defaultdict(list)
        windows = []
        with _server() as ask:
            for round_ in range(options["repeat"] + 1):
                for query in queries:
                    request = SearchRequest(query, top_k=options["top_k"])
                    measured = _measure(request, ask)
                    if round_:  # the first round warms caches and embeds the queries
                        for name, milliseconds in measured.items():
                            timings[name].append(milliseconds)
                        windows.append(measured["windows"])
        del timings["windows"]
        self._report(timings, len(queries), options["repeat"], windows)

    def _queries(self, path: Path | None) -> list[str]:
        if path is not None:
            if not path.is_file():
                raise CommandError(f"There is no file {path}.")
            queries = [line.strip() for line in path.read_text().splitlines() if line.strip()]
        else:
            titles = SearchDoc.objects.exclude(title="").order_by("vector_id")
            queries = list(titles.values_list("title", flat=True)[:20])
        if not queries:
            raise CommandError("There is no query to measure: the file or the index is empty.")
        return queries

    def _report(
        self, timings: Timings, queries: int, repeat: int, windows: Sequence[float]
    ) -> None:
        table = Table(title=f"{queries} queries, {repeat} rounds; milliseconds")
        table.add_column("what")
        table.add_column("p50", justify="right")
        table.add_column("p95", justify="right")
        for name, values in timings.items():
            table.add_row(name, f"{_percentile(values, 50):.2f}", f"{_percentile(values, 95):.2f}")
        console = Console(
            file=cast(IO[str], self.stdout), width=None if self.stdout.isatty() else 80
        )
        console.print(table)
        service = _percentile(timings["service, cached vector"], 50)
        dense = _percentile(timings["bare dense scan"], 50)
        lexical = _percentile(timings["bare lexical scan"], 50)
        http = _percentile(timings["HTTP request"], 50)
        console.print(f"service : bare scans  {service / (dense + lexical):.1f}")
        console.print(f"HTTP : service        {http / service:.1f}")
        console.print(f"windows per search    {statistics.mean(windows):.2f}")


def _percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    return (time.perf_counter() - started) * 1000, result


def _measure(request: SearchRequest, ask: Callable[[SearchRequest], None]) -> dict[str, float]:
    """Time one search every way; the service first, so that all find the same warm pages."""
    service, result = _timed(lambda: services.search(request=request))
    stages = {
        f"  stage {s}": t for s in STAGES if (t := result.trace.timings_ms.get(s)) is not None
    }
    http, _ = _timed(lambda: ask(request))
    bare = services.bare_scans(request=request)
    return {
        "bare dense scan": bare.get("dense", 0.0),
        "bare lexical scan": bare.get("sparse", 0.0),
        "service, cached vector": service,
        **stages,
        "HTTP request": http,
        "windows": result.trace.windows,
    }


@contextmanager
def _server() -> Iterator[Callable[[SearchRequest], None]]:
    """Serve the application on a free loopback port, for a user that exists meanwhile."""
    SearchView.throttle_classes = []  # of this process only: the limit is not what is measured
    user = get_user_model().objects.create_user(username=f"bench-{uuid4().hex[:12]}")
    _, token = get_token_model().objects.create(user)
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Quiet)
    server.set_app(get_wsgi_application())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    with httpx2.Client(
        base_url=base,
        # The development server writes head and body apart, and a connection that is kept would
        # wait 40 ms in between for a delayed acknowledgement.
        headers={"Authorization": f"Token {token}", "Connection": "close"},
        timeout=60,
    ) as client:

        def ask(request: SearchRequest) -> None:
            body = {"query": request.query, "top_k": request.top_k}
            client.post("/api/search", json=body).raise_for_status()

        try:
            yield ask
        finally:
            server.shutdown()
            server.server_close()
            user.delete()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""
