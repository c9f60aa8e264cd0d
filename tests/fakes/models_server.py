"""A server of rerankers and embedders that speaks real HTTP, and misbehaves on demand.

    with ModelsServer() as server:
        server.answer = status(503)
        ... server.url("/rerank") ...
        assert server.requests[0].body["query"] == "..."

`answer` is called with the handler of each request and writes the reply; the functions below make
the common ones. `release` is set at the end, so that a reply that hangs does not outlive the test.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

DRIP_S: Final = 0.02
LONGEST_HANG_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: Any


class Handler(BaseHTTPRequestHandler):
    """Reads a request, keeps it, and lets the server's `answer` reply."""

    protocol_version = "HTTP/1.1"  # connections are kept, as real servers do
    models: "ModelsServer"

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client may have given up, also between two requests
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.models.requests.append(Received(self.path, headers, body))
        self.models.answer(self, body)

    def reply(
        self, content: bytes, *, code: int = 200, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.send_response(code)
        for name, value in (*headers, ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def drip(self, content: bytes) -> None:
        """Send `content` byte by byte, so that no single read ever waits long."""
        for byte in content:
            if self.models.release.wait(DRIP_S):
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


Answer = Callable[[Handler, Any], None]


class ModelsServer:
    """The server, on a free port of 127.0.0.1, while the `with` block runs."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.release = threading.Event()
        self.answer: Answer = status(500)
        handler = type("BoundHandler", (Handler,), {"models": self})
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


def as_json(value: Any) -> Answer:
    """Reply 200 with `value`; NaN and Infinity are written as Python writes them."""
    return lambda handler, _: handler.reply(json.dumps(value).encode())


def text(content: bytes, *headers: tuple[str, str]) -> Answer:
    return lambda handler, _: handler.reply(content, headers=headers)


def status(code: int, *headers: tuple[str, str]) -> Answer:
    return lambda handler, _: handler.reply(b"a message with a secret", code=code, headers=headers)


def hang() -> Answer:
    return lambda handler, _: _wait(handler)


def drip_body() -> Answer:
    """Reply with a head that promises a body, and a body that comes too slowly to end."""

    def answer(handler: Handler, _: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.drip(b" " * 100_000)

    return answer


def drip_head() -> Answer:
    return lambda handler, _: handler.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 100_000)


def hang_up() -> Answer:
    """Close the connection without a reply."""

    def answer(handler: Handler, _: Any) -> None:
        handler.close_connection = True

    return answer


def each(*answers: Answer) -> Answer:
    """Reply to the first request with the first answer, and so on; the last one repeats."""
    rest: Iterator[Answer] = iter(answers)
    lock = threading.Lock()
    last = answers[-1]

    def answer(handler: Handler, body: Any) -> None:
        with lock:
            chosen = next(rest, last)
        chosen(handler, body)

    return answer


def rerank_by_length() -> Answer:
    """Reply as Cohere does, every document scored by its number of characters, best first."""

    def answer(handler: Handler, body: Any) -> None:
        results = [
            {"index": index, "relevance_score": len(document) / 1000}
            for index, document in enumerate(body["documents"])
        ]
        results.sort(key=lambda result: -result["relevance_score"])
        handler.reply(json.dumps({"results": results}).encode())

    return answer


def embed(dimensions: int) -> Answer:
    """Reply as OpenAI does, in reverse order; the vector of a text points along its length."""

    def answer(handler: Handler, body: Any) -> None:
        data = [
            {"index": index, "object": "embedding", "embedding": axis(len(text), dimensions)}
            for index, text in enumerate(body["input"])
        ]
        handler.reply(json.dumps({"object": "list", "data": data[::-1]}).encode())

    return answer


def axis(length: int, dimensions: int) -> list[float]:
    """Return the unit vector of a text of `length` characters in `embed`'s space."""
    return [float(position == length % dimensions) for position in range(dimensions)]


def _wait(handler: Handler) -> None:
    handler.models.release.wait(LONGEST_HANG_S)
    handler.close_connection = True
