"""GitHub's contents API and raw host over real HTTP: it serves files, and misbehaves on demand.

    with GitHubServer() as github:
        github.files["/repos/acme/app/contents/a.md"] = serve(b"text")
        ... override_settings(SEARCH_GITHUB_API_URL=github.url("")) ...
        assert github.requests[0].path == "/repos/acme/app/contents/a.md"

A path without a reply is 404. `release` is set at the end, so that a reply that hangs does not
outlive the test.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

RAW: Final = "application/vnd.github.raw+json; charset=utf-8"
LONGEST_HANG_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived; header names are in lower case."""

    path: str
    headers: dict[str, str]


class Handler(BaseHTTPRequestHandler):
    """Keeps a request and lets the reply of its path answer."""

    protocol_version = "HTTP/1.1"
    github: "GitHubServer"

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client may have given up
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.github.requests.append(Received(self.path, headers))
        self.github.files.get(self.path, status(404))(self)

    def reply(self, code: int, content: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        for name, value in (*headers, ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


Reply = Callable[[Handler], None]


class GitHubServer:
    """The server, on a free port of 127.0.0.1, while the `with` block runs."""

    def __init__(self) -> None:
        self.files: dict[str, Reply] = {}
        self.requests: list[Received] = []
        self.release = threading.Event()
        handler = type("BoundHandler", (Handler,), {"github": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._http.server_port}{path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release.set()
        self._http.shutdown()
        self._thread.join()
        self._http.block_on_close = False
        self._http.server_close()


# --- Replies -------------------------------------------------------------------------------------


def serve(content: bytes, content_type: str = RAW, *headers: tuple[str, str]) -> Reply:
    return lambda handler: handler.reply(200, content, ("Content-Type", content_type), *headers)


def status(code: int) -> Reply:
    return lambda handler: handler.reply(code, b'{"message": "a secret"}')


def redirect(location: str, code: int = 301) -> Reply:
    return lambda handler: handler.reply(code, b"", ("Location", location))


def hang(handler: Handler) -> None:
    handler.github.release.wait(LONGEST_HANG_S)
    handler.close_connection = True


def endless(handler: Handler) -> None:
    """Send a body in chunks that never ends."""
    handler.send_response(200)
    handler.send_header("Content-Type", RAW)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while not handler.github.release.is_set():
        handler.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
