"""A circuit breaker: a backend that failed is left alone for a while, then tried by one caller.

Closed, calls pass. A failure opens it for `cooldown_s` seconds. After that it is half open: one
caller, the probe, passes; its success closes the circuit, its failure opens it anew. M. Nygard,
"Release It!", 2007, ch. 5, with a threshold of one failure: here a failure has already cost a
search its whole time budget.
"""

import threading
import time
from collections.abc import Callable


class Circuit:
    """The state of one backend in this process; safe to share between threads.

    `clock` counts seconds and never goes back. Whoever is let through reports `succeeded` or
    `failed`; a probe that reports nothing loses its turn after one cool-down, so that a caller
    that was killed does not keep the circuit open for ever.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open_until: float | None = None  # None while closed
        self._reason = ""

    def refusal(self, *, cooldown_s: float) -> str | None:
        """Return None if the caller may pass, else why the backend is skipped.

        In the half-open state the first caller takes the probe; others are refused meanwhile.
        """
        with self._lock:
            if self._open_until is None:
                return None
            remaining = self._open_until - self._clock()
            if remaining <= 0:
                self._open_until = self._clock() + cooldown_s
                return None
            return f"skipped for another {remaining:.0f} s after a failure: {self._reason}"

    def succeeded(self) -> None:
        """Close the circuit."""
        with self._lock:
            self._open_until = None

    def failed(self, reason: str, *, cooldown_s: float) -> None:
        """Open the circuit for `cooldown_s` seconds from now."""
        with self._lock:
            self._open_until = self._clock() + cooldown_s
            self._reason = reason
