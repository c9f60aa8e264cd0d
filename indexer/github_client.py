"""GitHub's REST API as a client that waits when it is told to: limits, retries, redirects, ETags.

The token goes to the host of GITHUB_API_URL alone, and into no message: errors of the HTTP library,
which may quote headers, are not chained.
"""

import email.utils
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

import httpx2
import stamina

from indexer.errors import IndexerError

PUBLIC_API: Final = "https://api.github.com"
PAGE_SIZE: Final = 100  # the most that GitHub gives
# A renamed repository takes one, an issue of it at an address of its own another.
_MAX_REDIRECTS: Final = 3
_ATTEMPTS: Final = 5
_LONGEST_RETRY_S: Final = 30.0
# GitHub's advice for a secondary limit without a header: a minute, then longer each time.
_BACKOFF_S: Final = 60.0
_TIMEOUT: Final = httpx2.Timeout(60.0, connect=10.0)
_NOT_MODIFIED: Final = 304
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_SERVER_ERROR: Final = 500
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

OnWait = Callable[[float, str], None]


class Refused(IndexerError):
    """GitHub refused one request for good; `status` says how (404, 410, ...)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class LimitReached(IndexerError):
    """GitHub's rate limit lasts longer than this run may wait."""


class _Passing(IndexerError):
    """The request failed in a way that another try may mend."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a GET: decoded JSON, None where nothing changed since the ETag that was sent.

    `last_page` is what the Link header gives, 0 where it gives none; `date` the server's clock.
    """

    body: Any
    etag: str
    date: datetime
    has_next: bool
    last_page: int

    @property
    def unchanged(self) -> bool:
        return self.body is None


class GitHub:
    """A connection to the API at `url`; use as a context manager.

    It waits for rate limits, `max_wait` seconds altogether; `on_wait` is told the seconds and the
    reason before each wait. Raises IndexerError for a URL or token that cannot be used.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        max_wait: float,
        on_wait: OnWait = lambda seconds, reason: None,
        sleep: Callable[[float], None] = time.sleep,
        first_retry_s: float = 1.0,
        page_size: int = PAGE_SIZE,
    ) -> None:
        self.requests = 0
        self.page_size = page_size
        self._base = _checked(url, token)
        self._patience = max_wait
        self._on_wait = on_wait
        self._sleep = sleep
        self._first_retry_s = first_retry_s
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "ragsite-indexer",  # GitHub refuses requests without one
        }
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx2.Client(headers=headers, timeout=_TIMEOUT, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def get(
        self, path: str, parameters: Mapping[str, str | int] | None = None, *, etag: str = ""
    ) -> Answer:
        """Return the answer to a GET of a path below the base.

        Raises Refused for a status that asking again would not change, LimitReached when a limit
        lasts too long, IndexerError when the server cannot be reached.
        """
        url = self._base.copy_with(path=self._base.path.rstrip("/") + path)
        if parameters:
            url = url.copy_merge_params({name: str(value) for name, value in parameters.items()})
        for _ in range(1 + _MAX_REDIRECTS):
            response = self._patiently(url, etag)
            if response.status_code not in _REDIRECTS:
                return _answer(response, path)
            url = self._followed(url, response)
        raise Refused(response.status_code, f"{path}: redirected more than {_MAX_REDIRECTS} times")

    def _followed(self, url: httpx2.URL, response: httpx2.Response) -> httpx2.URL:
        """Return where a redirect leads; raises Refused where that is another host."""
        try:
            target = url.join(response.headers.get("Location", ""))
        except httpx2.InvalidURL:
            raise Refused(response.status_code, f"{url.path}: redirected to no address") from None
        if target.copy_with(path="/", query=None) != self._base.copy_with(path="/"):
            raise Refused(
                response.status_code, f"{url.path}: redirected to another host, {target.host}"
            )
        return target if target.query else target.copy_with(query=url.query)

    def _patiently(self, url: httpx2.URL, etag: str) -> httpx2.Response:
        """Send a request, and again after each limit that was waited for."""
        refusals = 0
        while True:
            response = self._send(url, etag)
            limit = _limit(response, refusals)
            if limit is None:
                return response
            refusals += 1
            self._wait(*limit)

    def _wait(self, seconds: float, reason: str) -> None:
        seconds = max(seconds, 1.0)  # a server that says 0 again and again is not asked for ever
        if seconds > self._patience:
            raise LimitReached(
                f"{reason}: GitHub asks to wait {seconds:,.0f} s, and this run may wait "
                f"{self._patience:,.0f} s more (--max-wait). What was read is stored; run the "
                "command again to go on."
            )
        self._patience -= seconds
        self._on_wait(seconds, reason)
        self._sleep(seconds)

    def _send(self, url: httpx2.URL, etag: str) -> httpx2.Response:
        """Send a request, and again where it failed in passing; raises IndexerError in the end."""
        tries = stamina.retry_context(
            on=_Passing,
            attempts=_ATTEMPTS,
            timeout=None,
            wait_initial=self._first_retry_s,
            wait_max=_LONGEST_RETRY_S,
            wait_jitter=self._first_retry_s / 2,
        )
        try:
            for attempt in tries:
                with attempt:
                    return self._once(url, etag)
        except _Passing as error:
            raise IndexerError(
                f"GitHub {error} ({_ATTEMPTS} tries). What was read is stored; run the command "
                "again to go on."
            ) from None
        raise AssertionError("the tries end in a response or an error")

    def _once(self, url: httpx2.URL, etag: str) -> httpx2.Response:
        self.requests += 1
        try:
            response = self._client.get(url, headers={"If-None-Match": etag} if etag else {})
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise _Passing(f"could not be reached: {type(error).__name__}") from None
        status = response.status_code
        if status >= _SERVER_ERROR and "Retry-After" not in response.headers:
            raise _Passing(f"answered with status {status}")
        if response.is_success and _json(response) is None:
            raise _Passing("answered with something that is not JSON")
        return response


def configured(*, max_wait: float, on_wait: OnWait) -> GitHub:
    """Return the client for GITHUB_API_URL and GITHUB_TOKEN; raises IndexerError."""
    url = os.environ.get("GITHUB_API_URL", "") or PUBLIC_API
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    return GitHub(url, token, max_wait=max_wait, on_wait=on_wait)


def _checked(url: str, token: str) -> httpx2.URL:
    try:
        base = httpx2.URL(url)
    except httpx2.InvalidURL:
        base = httpx2.URL("")
    if base.scheme not in {"http", "https"} or not base.host or base.userinfo:
        raise IndexerError("GITHUB_API_URL must be an address such as https://api.github.com.")
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise IndexerError("GITHUB_TOKEN holds characters that no token has.")
    if token and base.scheme == "http" and base.host not in _LOOPBACK:
        raise IndexerError("GITHUB_API_URL is not https: GITHUB_TOKEN would be sent in the clear.")
    return base


def _limit(response: httpx2.Response, refusals: int) -> tuple[float, str] | None:
    """Return the seconds to wait and why, None where the answer is no limit.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    headers, status = response.headers, response.status_code
    if status not in {_FORBIDDEN, _TOO_MANY} and status < _SERVER_ERROR:
        return None
    after = _retry_after(headers.get("Retry-After", ""), _date(response))
    if after is not None:
        return after, "rate limit" if status < _SERVER_ERROR else f"status {status}"
    reset = headers.get("X-RateLimit-Reset", "")
    if headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
        # By the server's clock, and a second more: both are in whole seconds.
        return int(reset) - _date(response).timestamp() + 1, "rate limit"
    if status >= _SERVER_ERROR:
        return _BACKOFF_S * 2**refusals, f"status {status}"
    if status == _TOO_MANY or _speaks_of_limit(response):
        return _BACKOFF_S * 2**refusals, "secondary rate limit"
    return None


def _speaks_of_limit(response: httpx2.Response) -> bool:
    """Return whether a 403 without a header is a secondary limit: it says so, or is no JSON."""
    body = _json(response)
    message = str(body.get("message", "")).lower() if isinstance(body, dict) else ""
    return body is None or "rate limit" in message or "abuse" in message


def _answer(response: httpx2.Response, path: str) -> Answer:
    """Return what a response holds; raises Refused for one that is neither a success nor 304."""
    status = response.status_code
    if status != _NOT_MODIFIED and not response.is_success:
        body = _json(response)
        said = str(body.get("message", "")) if isinstance(body, dict) else ""
        raise Refused(status, f"{path}: status {status}{said and f', {said[:200]}'}")
    links = response.links
    last = httpx2.URL(links["last"]["url"]).params.get("page", "") if "last" in links else ""
    return Answer(
        body=None if status == _NOT_MODIFIED else _json(response),
        etag=response.headers.get("ETag", ""),
        date=_date(response),
        has_next="next" in links,
        last_page=int(last) if last.isdecimal() else 0,
    )


def _json(response: httpx2.Response) -> Any:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None


def _date(response: httpx2.Response) -> datetime:
    """Return the server's clock; ours where it shows none."""
    return _http_date(response.headers.get("Date", "")) or datetime.now(UTC)


def _http_date(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _retry_after(value: str, now: datetime) -> float | None:
    if value.strip().isdecimal():
        return float(value)
    return (until - now).total_seconds() if (until := _http_date(value)) else None
