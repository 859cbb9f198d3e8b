"""The course that every queue runs: filled to a size, worked on, crashed, recovered, cleaned up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.queue.contestant import Contestant, Worked

WARM_UP = 3_000
WARM_UP_SECONDS = 30
"""A server in service has run for days; one just started still compiles its own code."""
MOST_ABANDONED = 10_000
MOST_ONE_BY_ONE = 500
"""Of a queue that takes its jobs one by one: more of them only take longer."""


@dataclass(slots=True)
class Round:
    """What was measured at one size: jobs per second by queue, and leases by batch."""

    size: int
    enqueue: dict[str, float] = field(default_factory=dict)
    worked: dict[int, dict[str, Worked]] = field(default_factory=dict)
    recover: dict[str, float] = field(default_factory=dict)
    cleanup: dict[str, float] = field(default_factory=dict)


class RunState:
    def __init__(
        self,
        contestants: Sequence[Contestant],
        *,
        batches: Sequence[int],
        seconds: float,
        say: Callable[[str], None],
    ) -> None:
        self._contestants = contestants
        self._batches = sorted(batches)
        self._seconds = seconds
        self._say = say
        self._ready = {one.name: 0 for one in contestants}
        self.rounds: list[Round] = []

    def warm_up(self) -> None:
        """Plans, caches and the just-in-time compiler; not measured."""
        for one in self._contestants:
            self._say(f"warming up {one.name}")
            count = self._bearable(one, WARM_UP)
            began = time.perf_counter()
            while time.perf_counter() - began < WARM_UP_SECONDS:
                for batch in (1, *self._batches):
                    self._fill(one, max(count, batch))
                    self._work(one, jobs=count, batch=batch, seconds=self._seconds / 2)
            if left := self._ready[one.name]:
                self._work(one, jobs=left, batch=left, seconds=math.inf)
            self._crash(one, 100)
            one.cleanup()

    def run(self, size: int) -> Round:
        measured = Round(size)
        for one in self._contestants:
            self._say(f"{size:,} jobs: enqueue on {one.name}")
            missing = size - self._ready[one.name]
            if missing > 0:
                measured.enqueue[one.name] = missing / self._fill(one, size)
        for batch in self._batches:
            measured.worked[batch] = {one.name: Worked() for one in self._contestants}
            for _ in range(2):
                for one in self._contestants:
                    self._say(f"{size:,} jobs: lease + complete {batch} on {one.name}")
                    share = self._in_shares(one, size, batch)
                    measured.worked[batch][one.name].add(share)
        for one in self._contestants:
            self._say(f"{size:,} jobs: recover and clean up on {one.name}")
            abandoned = min(size // 2, MOST_ABANDONED)
            measured.recover[one.name] = self._crash(one, abandoned)
            began = time.perf_counter()
            deleted = one.cleanup()
            if deleted:
                measured.cleanup[one.name] = deleted / (time.perf_counter() - began)
        self.rounds.append(measured)
        return measured

    def show_growth(self) -> None:
        """How a lease of the longest queue compares with one of the shortest."""
        if len(self.rounds) < 2:
            return
        first, last = self.rounds[0], self.rounds[-1]
        print(f"Median lease at {last.size:,} jobs, as a multiple of that at {first.size:,}:\n")
        for batch in self._batches:
            grown = [
                f"{name} {last.worked[batch][name].median_lease_ms / small.median_lease_ms:.2f}"
                for name, small in first.worked[batch].items()
            ]
            print(f"    batch {batch:>5,}   {'   '.join(grown)}")
        print()

    def _in_shares(self, one: Contestant, size: int, batch: int) -> Worked:
        """Half of the time, refilled in between, so that the queue keeps its size."""
        total = Worked()
        while total.seconds < self._seconds / 2:
            self._fill(one, size, allow_missing=size // 10)
            jobs = max(size // 4, batch) // batch * batch
            total.add(
                self._work(one, jobs=jobs, batch=batch, seconds=self._seconds / 2 - total.seconds)
            )
        return total

    def _work(self, one: Contestant, *, jobs: int, batch: int, seconds: float) -> Worked:
        worked = one.work(jobs=jobs, batch=batch, seconds=seconds)
        self._ready[one.name] -= worked.jobs
        return worked

    def _fill(self, one: Contestant, size: int, *, allow_missing: int = 0) -> float:
        """Seconds."""
        missing = size - self._ready[one.name]
        if missing <= allow_missing:
            return 0.0
        began = time.perf_counter()
        one.enqueue(missing)
        self._ready[one.name] += missing
        return time.perf_counter() - began

    def _crash(self, one: Contestant, count: int) -> float:
        """Jobs per second of recovery."""
        count = self._bearable(one, count)
        one.abandon(count)
        began = time.perf_counter()
        one.recover(count)
        seconds = time.perf_counter() - began
        one.settle(count)
        return count / seconds

    @staticmethod
    def _bearable(one: Contestant, count: int) -> int:
        return count if one.takes_many else min(count, MOST_ONE_BY_ONE)
