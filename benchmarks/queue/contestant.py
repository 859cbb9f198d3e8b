"""What every queue does in the benchmark, and what is measured of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Protocol

PAGE = 1_000
"""Jobs per call of enqueue: all of them take many at once."""

USUAL, FIRST = 0, 9
"""Priorities: what a crash is tried with comes before all others."""


@dataclass(slots=True)
class Worked:
    """Leases taken and completed, one after the other, by one caller."""

    jobs: int = 0
    seconds: float = 0.0
    leases: list[float] = field(default_factory=list)
    """Seconds of each lease alone."""

    def add(self, other: Worked) -> None:
        self.jobs += other.jobs
        self.seconds += other.seconds
        self.leases += other.leases

    @property
    def per_second(self) -> float:
        return self.jobs / self.seconds

    @property
    def median_lease_ms(self) -> float:
        return statistics.median(self.leases) * 1000


class Contestant(Protocol):
    name: str
    takes_many: bool = True
    """Whether one call takes a whole batch."""

    def enqueue(self, count: int) -> None:
        """New jobs, all due, in calls of `PAGE`."""

    def work(self, *, jobs: int, batch: int, seconds: float) -> Worked:
        """Lease and complete, until so many are done or the time is up."""

    def abandon(self, count: int) -> None:
        """So many new jobs, held by a worker that is gone; it is time to recover them."""

    def recover(self, count: int) -> None:
        """Give these jobs to another worker, or back to the queue."""

    def settle(self, count: int) -> None:
        """Complete what was recovered, so that nothing of it is left behind."""

    def cleanup(self) -> int | None:
        """Delete what is completed; how many, or None where completing deletes."""

    def close(self) -> None: ...
