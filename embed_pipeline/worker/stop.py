"""When and why a run stops: its deadline, a request to stop, and the reason that it reports."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from embed_pipeline.ports.clock import Clock

SHORTEST_WAIT, LONGEST_WAIT = timedelta(milliseconds=500), timedelta(seconds=5)


class StopReason(StrEnum):
    """Why a run stopped leasing."""

    QUEUE_EMPTY = "the queue is empty"
    BUDGET_SPENT = "the budget is used up"
    TIME_UP = "its time was up"
    REFUSED = "leasing is refused"
    HALTED = "a critical error halted the queue"
    STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Whether a run goes on; if not, why it stops and when another may be worth starting.

    Every step of a run that may stop it returns a state, and the run adds it to its own.
    """

    stop_reason: StopReason | None = None
    back_at: datetime | None = None
    """When leasing may work again; None where that is unknown, or where a person has to act."""

    @property
    def is_running(self) -> bool:
        return self.stop_reason is None

    @property
    def waits_for_budget(self) -> bool:
        return self.stop_reason is StopReason.BUDGET_SPENT

    def then(self, later: RunState) -> RunState:
        """The first reason counts; a spent budget yields to any other, and all yield to a halt."""
        if later.is_running:
            return self
        if self.is_running or self.waits_for_budget or later.stop_reason is StopReason.HALTED:
            return later
        return self


RUNNING = RunState()


class Deadline:
    """How long a run may go on; `stop` ends it early, from any thread."""

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

    @property
    def state(self) -> RunState:
        if self.stopped:
            return RunState(stop_reason=StopReason.STOPPED)
        return RunState(stop_reason=StopReason.TIME_UP) if self.time_is_up else RUNNING

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

    def wait_towards(self, time: datetime) -> None:
        """Wait for a time of the database's clock, but only from 0.5 to 5 seconds at once.

        The database's clock may differ from ours: without these bounds a difference would mean a
        wait without end, or none at all. The caller checks again afterwards.
        """
        self.wait(min(max(time - self._clock.now(), SHORTEST_WAIT), LONGEST_WAIT))
