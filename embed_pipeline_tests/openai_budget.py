"""The budget of the loopback server: sliding windows of requests and tokens, and their headers."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from embed_pipeline_tests.openai_faults import Reply, rate_limited, request_too_large


@dataclass(frozen=True, slots=True)
class _Accepted:
    at: float
    tokens: int


class Budget:
    """Accepts what fits in the window; None means without limit."""

    def __init__(
        self,
        *,
        requests: int | None = None,
        tokens: int | None = None,
        per: timedelta = timedelta(seconds=60),
    ) -> None:
        self.requests = requests
        self.tokens = tokens
        self.per = per
        self._accepted: deque[_Accepted] = deque()
        self._lock = threading.Lock()

    def forget(self) -> None:
        with self._lock:
            self._accepted.clear()

    def refused(self, tokens: int, at: float) -> Reply | None:
        """A 429 where the request does not fit; else it is spent."""
        with self._lock:
            self._drop_old(at)
            if self.tokens is not None and tokens > self.tokens:
                return request_too_large().reply
            if self._fits(tokens):
                self._accepted.append(_Accepted(at, tokens))
                return None
            wait = self._accepted[0].at + self._window - at if self._accepted else self._window
            return rate_limited({"Retry-After": str(math.ceil(wait)), **self._headers(at)}).reply

    def headers(self, at: float) -> Mapping[str, str]:
        """As OpenAI words them, for the limits that there are."""
        with self._lock:
            self._drop_old(at)
            return self._headers(at)

    @property
    def _window(self) -> float:
        return self.per.total_seconds()

    def _drop_old(self, at: float) -> None:
        while self._accepted and self._accepted[0].at <= at - self._window:
            self._accepted.popleft()

    def _fits(self, tokens: int) -> bool:
        if self.requests is not None and len(self._accepted) >= self.requests:
            return False
        return self.tokens is None or self._tokens_spent() + tokens <= self.tokens

    def _tokens_spent(self) -> int:
        return sum(accepted.tokens for accepted in self._accepted)

    def _headers(self, at: float) -> dict[str, str]:
        # Until the window is as it was in the beginning: what the reset header means.
        reset = self._accepted[-1].at + self._window - at if self._accepted else 0.0
        spent = {"requests": len(self._accepted), "tokens": self._tokens_spent()}
        limits = {"requests": self.requests, "tokens": self.tokens}
        headers = {}
        for kind, limit in limits.items():
            if limit is not None:
                headers[f"x-ratelimit-limit-{kind}"] = str(limit)
                headers[f"x-ratelimit-remaining-{kind}"] = str(limit - spent[kind])
                headers[f"x-ratelimit-reset-{kind}"] = f"{max(0, round(reset * 1000))}ms"
        return headers


def most_in_any_window(times: Sequence[float], window: timedelta) -> int:
    """How many of the times lie in the fullest window that is closed at its beginning."""
    ordered = sorted(times)
    ends = (bisect_right(ordered, start + window.total_seconds()) for start in ordered)
    return max((end - number for number, end in enumerate(ends)), default=0)
