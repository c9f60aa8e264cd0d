"""GitHub's REST API over real HTTP: a repository that pages, limits, fails and moves while read.

    with GitHubApi() as github:
        pull = github.issue("title", pull=True)
        github.comment(pull, "a comment that is long enough")
        github.refusals.append(Reply(403, {"message": "secondary rate limit"}))
        ... GITHUB_API_URL=github.url ...
        assert github.requests[0].path == "/repos/acme/app"

`refusals` answer the next requests, one each; `replies` those of a path; `before` is called with
each request before it is answered, and may change anything. Pages hold `page_size` items.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlsplit

START: Final = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Received:
    """A request as it arrived; header names are in lower case."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """What is answered instead of the truth."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Json = dict[str, Any]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: the client would wait 40 ms for the second
    github: "GitHubApi"

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client may have been killed
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(parts.path, dict(parse_qsl(parts.query)), headers)
        reply = self.github.reply(received)
        data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        etag = f'W/"{hashlib.sha256(data).hexdigest()[:16]}"'
        if reply.status == 200 and headers.get("if-none-match") == etag:
            reply, data = Reply(304), b""
        self.send_response(reply.status)
        for name, value in {"ETag": etag, **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


class GitHubApi:
    """One repository and the server in front of it, while the `with` block runs."""

    def __init__(self, name: str = "acme/app", *, page_size: int = 5) -> None:
        self.name = name
        self.identity = 4711
        self.page_size = page_size
        self.old_names: set[str] = set()
        self.issues: dict[int, Json] = {}
        self.comments: dict[int, Json] = {}
        self.inline: dict[int, Json] = {}
        self.reviews: dict[int, list[Json]] = {}
        self.releases: list[Json] = []
        self.requests: list[Received] = []
        self.refusals: list[Reply] = []
        self.replies: dict[str, Reply] = {}
        self.before: Callable[[Received], None] = lambda received: None
        self._now = START
        self._next = 0
        self._lock = threading.RLock()
        handler = type("BoundHandler", (Handler,), {"github": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.block_on_close = False
        self._http.server_close()

    def paths(self) -> list[str]:
        """What was asked for, without the repository's own address."""
        return [one.path.removeprefix(f"/repos/{self.name}") for one in self.requests]

    # --- What happens on GitHub ------------------------------------------------------------------

    def tick(self, seconds: int = 1) -> str:
        """Let time pass and return it."""
        self._now += timedelta(seconds=seconds)
        return self.clock()

    def clock(self) -> str:
        return self._now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_id(self) -> int:
        self._next += 1
        return self._next

    def issue(self, title: str = "Title", body: str | None = "Body", **fields: Any) -> int:
        """Open an issue, or a pull request with `pull=True`, and return its number."""
        pull = fields.pop("pull", False)
        number = fields.pop("number", None) or max(self.issues, default=0) + 1
        now = self.tick()
        data = {"id": self.new_id(), "number": number, "title": title, "body": body}
        data |= {"state": "open", "labels": [], "milestone": None, "assignees": []}
        data |= {"created_at": now, "updated_at": now, "user": {"login": "ada"}}
        if pull:
            data["pull_request"] = {"url": f"{self.url}/repos/{self.name}/pulls/{number}"}
        self.issues[number] = data | fields
        return int(number)

    def edit(self, number: int, **fields: Any) -> None:
        self.issues[number] |= {"updated_at": self.tick(), **fields}

    def comment(
        self, number: int, body: str | None = "A long enough comment", **fields: Any
    ) -> int:
        now, key = self.tick(), self.new_id()
        address = f"{self.url}/repos/{self.name}/issues/{number}"
        data = {"id": key, "body": body, "user": {"login": "bob"}, "issue_url": address}
        self.comments[key] = data | {"created_at": now, "updated_at": now} | fields
        if number in self.issues:
            self.issues[number]["updated_at"] = now
        return key

    def inline_comment(self, number: int, body: str = "A long enough remark", **fields: Any) -> int:
        now, key = self.tick(), self.new_id()
        address = f"{self.url}/repos/{self.name}/pulls/{number}"
        data = {"id": key, "body": body, "user": {"login": "eve"}, "pull_request_url": address}
        data |= {"path": "src/a.py", "line": 7, "original_line": 5, "commit_id": "c" * 40}
        self.inline[key] = data | {"created_at": now, "updated_at": now} | fields
        self.issues[number]["updated_at"] = now
        return key

    def review(self, number: int, body: str | None = "A long enough review", **fields: Any) -> int:
        now, key = self.tick(), self.new_id()
        data = {"id": key, "body": body, "user": {"login": "eve"}, "state": "APPROVED"}
        self.reviews.setdefault(number, []).append(data | {"submitted_at": now} | fields)
        self.issues[number]["updated_at"] = now
        return key

    def release(self, tag: str, body: str | None = "Notes", **fields: Any) -> None:
        now = self.tick()
        data = {"id": self.new_id(), "tag_name": tag, "name": f"Release {tag}", "body": body}
        data |= {"draft": False, "created_at": now, "published_at": now}
        self.releases.insert(0, data | fields)

    def delete_issue(self, number: int) -> None:
        """Delete an issue with what was said about it, as a transfer does, too."""
        del self.issues[number]
        self.reviews.pop(number, None)
        for said, key in ((self.comments, "issue_url"), (self.inline, "pull_request_url")):
            for one in [k for k, v in said.items() if v[key].endswith(f"/{number}")]:
                del said[one]

    # --- What GitHub answers ---------------------------------------------------------------------

    def reply(self, received: Received) -> Reply:
        with self._lock:
            self.requests.append(received)
            self.before(received)
            if self.refusals:
                return self.refusals.pop(0)
            if received.path in self.replies:
                return self.replies[received.path]
            return self._true_reply(received)

    def _true_reply(self, received: Received) -> Reply:
        for old in self.old_names:
            if received.path.startswith(f"/repos/{old}"):
                rest = received.path.removeprefix(f"/repos/{old}")
                query = "&".join(f"{k}={v}" for k, v in received.query.items())
                where = f"{self.url}/repositories/{self.identity}{rest}{query and '?'}{query}"
                return Reply(301, {"message": "Moved"}, {"Location": where})
        found = re.fullmatch(
            rf"(?i:/repos/{re.escape(self.name)}|/repositories/{self.identity})(/.*)?",
            received.path,
        )
        if not found:
            return Reply(404, {"message": "Not Found"})
        if not found[1]:
            return Reply(200, {"id": self.identity, "full_name": self.name})
        items = self._listing(found[1], received.query)
        if items is None:
            return Reply(404, {"message": "Not Found"})
        return self._page(items, received)

    def _listing(self, path: str, query: dict[str, str]) -> list[Json] | None:
        if path == "/releases":
            return self.releases
        if one := re.fullmatch(r"/pulls/(\d+)/reviews", path):
            known = int(one[1]) in self.issues
            return self.reviews.get(int(one[1]), []) if known else None
        if one := re.fullmatch(r"/issues/(\d+)/comments", path):
            end = f"/issues/{one[1]}"
            return [c for c in self.comments.values() if c["issue_url"].endswith(end)]
        listings = {
            "/issues": list(self.issues.values()),
            "/pulls": [
                {key: value for key, value in one.items() if key != "pull_request"}
                | {"head": {}, "base": {}}
                for one in self.issues.values()
                if "pull_request" in one
            ],
            "/issues/comments": list(self.comments.values()),
            "/pulls/comments": list(self.inline.values()),
        }
        if path not in listings:
            return None
        items = [one for one in listings[path] if one["updated_at"] >= query.get("since", "")]
        if path == "/issues":
            for one in items:
                end = f"/issues/{one['number']}"
                said = [c for c in self.comments.values() if c["issue_url"].endswith(end)]
                one["comments"] = len(said)
        backwards = query.get("direction") == "desc"
        return sorted(items, key=lambda one: (one["updated_at"], one["id"]), reverse=backwards)

    def _page(self, items: list[Json], received: Received) -> Reply:
        size = min(int(received.query.get("per_page", "30")), self.page_size)
        number = int(received.query.get("page", "1"))
        last = max(1, -(-len(items) // size))
        page = items[(number - 1) * size : number * size]
        base = f"{self.url}{received.path}?per_page={size}&page="
        links = []
        if number < last:
            links = [f'<{base}{number + 1}>; rel="next"', f'<{base}{last}>; rel="last"']
        return Reply(200, page, {"Link": ", ".join(links)} if links else {})
