"""Time as the process sees it. No other module calls `datetime.now()`."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    @abstractmethod
    def now(self) -> datetime:
        """Aware, in UTC."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds that never go back; for deadlines inside one process."""

    @abstractmethod
    def wait(self, event: threading.Event, timeout: timedelta) -> bool:
        """Wait for the event or the timeout; True when the event came."""


class SystemClock(Clock):
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout: timedelta) -> bool:
        return event.wait(max(0.0, timeout.total_seconds()))
