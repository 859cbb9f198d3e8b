"""How long a run may go on, and whether it was told to stop."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from embed_pipeline.ports.clock import Clock

SHORTEST_WAIT, LONGEST_WAIT = timedelta(milliseconds=500), timedelta(seconds=5)


class Deadline:
    def __init__(
        self, clock: Clock, *, limit: timedelta | None, stop: threading.Event | None = None
    ) -> None:
        self._clock = clock
        self._ends = None if limit is None else clock.monotonic() + limit.total_seconds()
        self._stop = stop or threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    @property
    def time_is_up(self) -> bool:
        return self._ends is not None and self._clock.monotonic() >= self._ends

    def allows(self, duration: timedelta) -> bool:
        """Whether there is time for a wait of this length."""
        if self.stopped:
            return False
        return self._ends is None or (
            self._clock.monotonic() + duration.total_seconds() < self._ends
        )

    def stop(self) -> None:
        self._stop.set()

    def wait(self, duration: timedelta) -> None:
        self._clock.wait(self._stop, duration)

    def wait_towards(self, moment: datetime) -> None:
        """Wait for a moment of the database's clock, a few seconds at most, then look again.

        Its clock is not ours: the bounds keep a wrong one from waiting for ever or in a circle.
        """
        self.wait(min(max(moment - self._clock.now(), SHORTEST_WAIT), LONGEST_WAIT))
