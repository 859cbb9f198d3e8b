"""A costly answer that is asked for at most so often."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.clock import Clock

T = TypeVar("T")


class Recent(Generic[T]):
    """Remembers a failure as long as an answer: a database that is down is not asked more often.

    Scrapes that come together wait for one count and share it.
    """

    def __init__(self, ask: Callable[[], T], *, for_: timedelta, clock: Clock) -> None:
        self._ask, self._for, self._clock = ask, for_.total_seconds(), clock
        self._lock = threading.Lock()
        self._asked_at: float | None = None
        self._answer: Callable[[], T]

    def __call__(self) -> T:
        with self._lock:
            now = self._clock.monotonic()
            if self._asked_at is None or now - self._asked_at >= self._for:
                self._answer = self._asked()
                # Counted from the end: a count that takes longer than that still serves somebody.
                self._asked_at = self._clock.monotonic()
            return self._answer()

    def _asked(self) -> Callable[[], T]:
        try:
            answer = self._ask()
        except EmbedPipelineError as error:
            failure = error

            def raised() -> T:
                raise failure

            return raised
        return lambda: answer
