"""The course that every queue runs: filled to a size, worked on, crashed, recovered, cleaned up."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.queue.contestant import Contestant, Worked

WARM_UP = 3_000
WARM_UP_SECONDS = 30
"""A server in service has run for days; one just started still compiles its own code."""
CRASHES = 3
MOST_ABANDONED = 10_000
MOST_ONE_BY_ONE = 500
"""Of a queue that takes its jobs one by one: more of them only take longer."""

Row = dict[str, float]
"""A figure of each contestant, by its name."""


@dataclass(slots=True)
class Figures:
    """What was measured at one size, each row by its title."""

    size: int
    speeds: dict[str, Row] = field(default_factory=dict)
    """Jobs per second."""
    leases: dict[str, Row] = field(default_factory=dict)
    """The median lease in milliseconds."""

    @classmethod
    def median(cls, rounds: Sequence[Figures]) -> Figures:
        """Of each figure, the median of the rounds that have it."""
        return cls(
            rounds[0].size,
            _medians([one.speeds for one in rounds]),
            _medians([one.leases for one in rounds]),
        )


def _medians(rounds: Sequence[dict[str, Row]]) -> dict[str, Row]:
    return {
        title: {
            name: statistics.median(
                one[title][name] for one in rounds if name in one.get(title, {})
            )
            for name in row
        }
        for title, row in rounds[0].items()
    }


class Measurement:
    def __init__(
        self,
        contestants: Sequence[Contestant],
        *,
        batches: Sequence[int],
        seconds: float,
        say: Callable[[str], None],
    ) -> None:
        self._contestants = list(contestants)
        self._batches = sorted(batches)
        self._seconds = seconds
        self._say = say
        self._ready = {one.name: 0 for one in contestants}
        self._enqueued = {one.name: Worked() for one in contestants}

    def warm_up(self) -> None:
        """Plans, caches and the just-in-time compiler, in turns as well; not measured."""
        spent = dict.fromkeys(self._ready, 0.0)
        while min(spent.values()) < WARM_UP_SECONDS:
            for one in self._contestants:
                self._say(f"warming up {one.name}")
                began = time.perf_counter()
                for batch in (1, *self._batches):
                    count = max(self._bearable(one, WARM_UP), batch)
                    self._fill(one, count)
                    self._work(one, jobs=count, batch=batch, seconds=self._seconds / 2)
                spent[one.name] += time.perf_counter() - began
        for one in self._contestants:
            if left := self._ready[one.name]:
                self._work(one, jobs=left, batch=left, seconds=math.inf)
            self._crash(one, 100)
            one.cleanup()

    def measure(self, size: int, rounds: int) -> Figures:
        """The contestants take turns at every measurement; every round begins with another."""
        measured = []
        for number in range(1, rounds + 1):
            self._say(f"{size:,} jobs, round {number} of {rounds}")
            measured.append(self._round(size))
            self._contestants.append(self._contestants.pop(0))
        return Figures.median(measured)

    def _round(self, size: int) -> Figures:
        figures = Figures(size, {"enqueue": {}})
        self._enqueued = {one.name: Worked() for one in self._contestants}
        for one in self._contestants:
            self._fill(one, size)
        for batch in self._batches:
            worked = {one.name: Worked() for one in self._contestants}
            for _ in range(2):
                for one in self._contestants:
                    self._say(f"{size:,} jobs: lease + complete {batch} on {one.name}")
                    worked[one.name].add(self._in_shares(one, size, batch))
            figures.speeds[f"lease + complete {batch:,}"] = {
                name: total.per_second for name, total in worked.items()
            }
            figures.leases[f"lease {batch:,}"] = {
                name: total.median_lease_ms for name, total in worked.items()
            }
        figures.speeds |= {"recover": {}, "cleanup": {}}
        for one in self._contestants:
            self._say(f"{size:,} jobs: recover and clean up on {one.name}")
            abandoned = min(size // 2, MOST_ABANDONED)
            figures.speeds["recover"][one.name] = self._crash(one, abandoned)
            began = time.perf_counter()
            if deleted := one.cleanup():
                seconds = time.perf_counter() - began
                figures.speeds["cleanup"][one.name] = deleted / seconds
            figures.speeds["enqueue"][one.name] = self._enqueued[one.name].per_second
        return figures

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

    def _fill(self, one: Contestant, size: int, *, allow_missing: int = 0) -> None:
        missing = size - self._ready[one.name]
        if missing <= allow_missing:
            return
        began = time.perf_counter()
        one.enqueue(missing)
        self._ready[one.name] += missing
        self._enqueued[one.name].add(Worked(missing, time.perf_counter() - began))

    def _crash(self, one: Contestant, count: int) -> float:
        """Jobs per second of recovery, of three crashes: a single one is over too soon."""
        count = self._bearable(one, count)
        seconds = 0.0
        for _ in range(CRASHES):
            one.abandon(count)
            began = time.perf_counter()
            one.recover(count)
            seconds += time.perf_counter() - began
            one.settle(count)
        return CRASHES * count / seconds

    @staticmethod
    def _bearable(one: Contestant, count: int) -> int:
        return count if one.takes_many else min(count, MOST_ONE_BY_ONE)
