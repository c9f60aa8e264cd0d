"""Calls to other servers, with a time limit that holds whatever the server does.

The calls run in one event loop in a thread of its own, because only there can a deadline cut a
call anywhere: during the look-up of a name, a handshake, a head or a body that comes drop by drop.
A blocking client limits each read, and a server that sends a byte now and then resets that for
ever. The loop also keeps connections open between calls.

Nothing that is raised or logged here holds the URL, the key, or text of the server's answer.
"""

import asyncio
import email.utils
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import httpx2
import stamina

# Uvicorn closes an idle connection after 5 s; a call must not meet one that is just being closed.
_KEEP_ALIVE_S: Final = 4.0
_MAX_CONNECTIONS: Final = 32
# What the caller's thread waits beyond the limit that the loop itself keeps.
_GRACE_S: Final = 0.5
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500


T = TypeVar("T")


class RemoteError(Exception):
    """A call failed. The text completes "the server ..." and holds no secret.

    `passing` says that another try may succeed, `after_s` when the server asked to be tried again.
    """

    def __init__(self, text: str, *, passing: bool = False, after_s: float | None = None) -> None:
        super().__init__(text)
        self.passing = passing
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class Call:
    """One POST: `seconds` limits it as a whole, `attempt_seconds` a try, `max_bytes` the answer."""

    url: str
    payload: object
    seconds: float
    attempt_seconds: float
    attempts: int = 1
    max_bytes: int = 1_000_000
    api_key: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        """Return the headers to send; the only place that spells out the key."""
        # Uncompressed, so that the bound on the body is also one on what it unfolds to.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        return headers | ({"Authorization": f"Bearer {self.api_key}"} if self.api_key else {})


def post(call: Call) -> Any:
    """Send `call` and return the decoded JSON of the answer; raises RemoteError, in time.

    Redirects are not followed. A try that found no connection, lost it, ran out of time or was
    answered with 429 or 5xx is repeated with growing, jittered waits, or when the server's
    Retry-After says, as far as `attempts` and `seconds` allow.
    """
    return run(partial(_post_in_time, call=call), seconds=call.seconds)


def run(work: Callable[[httpx2.AsyncClient], Coroutine[Any, Any, T]], *, seconds: float) -> T:
    """Run `work` in the loop of the calls and return its value.

    `work` has `seconds` and must keep to them itself; it is cut off soon after. Raises what it
    raises, RemoteError when it is cut off.
    """
    return _courier().run(work, seconds)


class _Courier:
    """An event loop in a daemon thread, and the client whose connections live in it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="remote-calls", daemon=True).start()
        self._client = httpx2.AsyncClient(
            follow_redirects=False,
            timeout=None,  # the deadlines below cover every phase
            limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_S),
        )

    def run(
        self, work: Callable[[httpx2.AsyncClient], Coroutine[Any, Any, T]], seconds: float
    ) -> T:
        future = asyncio.run_coroutine_threadsafe(work(self._client), self._loop)
        try:
            return future.result(timeout=seconds + _GRACE_S)
        except FutureTimeout:  # the loop itself got no turn
            future.cancel()
            raise RemoteError(_late(seconds), passing=True) from None


_lock = threading.Lock()
_running: _Courier | None = None


def _courier() -> _Courier:
    """Return the courier of this process, started at the first call."""
    global _running  # noqa: PLW0603 - one loop a process
    with _lock:
        _running = _running or _Courier()
        return _running


def _forget_after_fork() -> None:
    """A child process has the object but not its thread: it starts its own."""
    global _lock, _running
    _lock, _running = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


async def _post_in_time(client: httpx2.AsyncClient, call: Call) -> Any:
    deadline = time.monotonic() + call.seconds

    def again(error: Exception) -> bool | float:
        if not isinstance(error, RemoteError) or not error.passing:
            return False
        if error.after_s is None:
            return True
        return error.after_s if time.monotonic() + error.after_s < deadline else False

    try:
        async with asyncio.timeout(call.seconds):
            tries = stamina.retry_context(
                on=again,
                attempts=call.attempts,
                timeout=call.seconds,
                wait_initial=0.1,
                wait_max=2.0,
                wait_jitter=0.2,
            )
            async for attempt in tries:
                with attempt:
                    return await _attempt(client, call)
    except TimeoutError:
        pass
    raise RemoteError(_late(call.seconds), passing=True)


async def _attempt(client: httpx2.AsyncClient, call: Call) -> Any:
    """Send `call` once."""
    async with in_time(call.attempt_seconds):
        body = json.dumps(call.payload, ensure_ascii=False).encode()
        async with client.stream(
            "POST", call.url, content=body, headers=call.headers()
        ) as response:
            check_head(response)
            return _decoded(await read_body(response, call.max_bytes))


@asynccontextmanager
async def in_time(seconds: float) -> AsyncIterator[None]:
    """Cut what is done inside off after `seconds`, and make a RemoteError of whatever goes wrong.

    Errors of the client are not chained: they may quote the headers.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except RemoteError:
        raise
    except TimeoutError:
        raise RemoteError(_late(seconds), passing=True) from None
    except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL, ValueError):
        raise RemoteError("cannot be called: its URL or key is not valid") from None
    except Exception as error:  # a port of 99999 is a group of OverflowErrors, for one
        text = f"could not be reached ({type(error).__name__})"
        raise RemoteError(text, passing=isinstance(error, httpx2.TransportError)) from None


def check_head(response: httpx2.Response) -> None:
    """Raise RemoteError unless the answer is a success, in a form that was asked for."""
    status = response.status_code
    if not response.is_success:
        passing = status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR
        after_s = _retry_after(response.headers.get("Retry-After", ""))
        raise RemoteError(f"answered with status {status}", passing=passing, after_s=after_s)
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise RemoteError("answered in a compressed form that was not asked for")


async def read_body(response: httpx2.Response, max_bytes: int) -> bytes:
    """Return the body of a streamed answer; raises RemoteError beyond `max_bytes`."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            raise RemoteError(f"answered with more than {max_bytes:,} bytes")
    return bytes(body)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # also bytes that are not UTF-8
        raise RemoteError("answered with something that is not JSON") from None


def _retry_after(value: str) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date; None if it has neither."""
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _late(seconds: float) -> str:
    return f"did not answer within {seconds * 1000:.0f} ms"


def plain(text: str) -> str:
    """Return `text` without NUL, which servers refuse, and lone surrogates, which UTF-8 cannot."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
