"""A clock that moves only when a test moves it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from embed_pipeline.ports.clock import Clock

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
MILLISECOND = timedelta(milliseconds=1)


class FakeClock(Clock):
    """`wait` never blocks: it lets the awaited time pass at once, unless the event is set."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = timedelta(0)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed.total_seconds()

    def advance(self, duration: timedelta) -> None:
        with self._lock:
            self._elapsed += duration

    def wait(self, event: threading.Event, timeout: timedelta) -> bool:
        if event.is_set():
            return True
        self.advance(max(timeout, timedelta(0)))
        return False
