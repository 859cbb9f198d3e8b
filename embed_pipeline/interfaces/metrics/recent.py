"""A costly answer that is asked for at most so often."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.clock import Clock

T = TypeVar("T")

PATIENCE = timedelta(seconds=2)
"""A count that takes longer goes on by itself; scrapes get the answer before it meanwhile."""


class Recent(Generic[T]):
    """Remembers a failure as long as an answer: a database that is down is not asked more often.

    Scrapes that come together share one count. Only the first of all is waited for to its end.
    """

    def __init__(self, ask: Callable[[], T], *, for_: timedelta, clock: Clock) -> None:
        self._ask, self._for, self._clock = ask, for_.total_seconds(), clock
        self._lock = threading.Lock()
        self._asked_at: float | None = None
        self._counted: threading.Event | None = None
        """Of the count that is under way."""
        self._answer: Callable[[], T] | None = None

    def __call__(self) -> T:
        with self._lock:
            if self._counted is None and self._is_old():
                self._counted = self._begin()
            counted, is_first = self._counted, self._answer is None
        if counted is not None:
            counted.wait(None if is_first else PATIENCE.total_seconds())
        with self._lock:
            answer = self._answer
        assert answer is not None, "the count itself failed, and its thread told why"
        return answer()

    def _is_old(self) -> bool:
        return self._asked_at is None or self._clock.monotonic() - self._asked_at >= self._for

    def _begin(self) -> threading.Event:
        counted = threading.Event()
        # A daemon: nobody who ends the exporter waits for a walk over the graph.
        threading.Thread(target=self._count, args=[counted], name="count", daemon=True).start()
        return counted

    def _count(self, counted: threading.Event) -> None:
        try:
            answer = self._asked()
            with self._lock:
                self._answer = answer
                # From the end: a count that takes longer than that still serves somebody.
                self._asked_at = self._clock.monotonic()
        finally:
            with self._lock:
                self._counted = None
            counted.set()

    def _asked(self) -> Callable[[], T]:
        try:
            answer = self._ask()
        except EmbedPipelineError as error:
            failure = error

            def raised() -> T:
                raise failure

            return raised
        return lambda: answer
