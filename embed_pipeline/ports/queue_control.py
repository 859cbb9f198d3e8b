"""What all workers share beside the jobs: switch, breakers, health, events, counters, leases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.control import Switch
from embed_pipeline.domain.health import HealthReport
from embed_pipeline.domain.job import Event, FailureRecord, JobId
from embed_pipeline.domain.lease import NamedLease
from embed_pipeline.telemetry.latency import Histogram


class SwitchBoard(Protocol):
    """Stops all leasing until a person resumes it."""

    @abstractmethod
    def read(self) -> Switch: ...

    @abstractmethod
    def pause(self, reason: str) -> Switch:
        """A halted queue stays halted."""

    @abstractmethod
    def halt(
        self,
        reason: str,
        *,
        seen: int,
        owner: str | None = None,
        job_ids: Sequence[JobId] = (),
    ) -> Switch:
        """Halt, unless the queue was resumed since the caller read the generation `seen`.

        `owner` and `job_ids` say who met the reason, for the event and the log.
        """

    @abstractmethod
    def resume(self, reason: str) -> Switch: ...


class Breakers(Protocol):
    """One pause for all workers, by name: a provider's or the graph's."""

    @abstractmethod
    def read(self, name: str) -> Breaker:
        """Closed if it was never tripped."""

    @abstractmethod
    def trip(self, name: str, *, seen: int, error: FailureRecord) -> Breaker:
        """Open it or double its pause; counts as one failure for health, however many jobs."""

    @abstractmethod
    def claim_probe(self, name: str) -> Breaker | None:
        """The right to try once, to the first that asks after the pause; otherwise None."""

    @abstractmethod
    def give_back_probe(self, name: str, *, seen: int) -> Breaker:
        """The claim was not used: the next that asks may try at once. It closes nothing."""

    @abstractmethod
    def close(self, name: str, *, seen: int) -> Breaker: ...


class Health(Protocol):
    @abstractmethod
    def report(self) -> HealthReport: ...


class Events(Protocol):
    @abstractmethod
    def recent(self, *, limit: int = 100, kind: str | None = None) -> tuple[Event, ...]:
        """The latest first."""


class Counters(Protocol):
    """Monotonic sums, so that short-lived runs lose none of their metrics."""

    @abstractmethod
    def add(self, amounts: Mapping[str, int]) -> None: ...

    @abstractmethod
    def read(self) -> Mapping[str, int]:
        """Without those that make up the histograms."""

    @abstractmethod
    def latencies(self, *, model: str) -> Sequence[Histogram]:
        """Every histogram that was counted, and all kinds for `model`, empty or not."""


class NamedLeases(Protocol):
    """One at a time: the right to do a named task, such as discovery; by the database's clock."""

    @abstractmethod
    def take(self, name: str, *, owner: str, duration: timedelta) -> NamedLease:
        """The lease as it is afterwards: the caller's, new or extended, or that of another owner.

        A lease whose time is over is anyone's.
        """

    @abstractmethod
    def release(self, name: str, *, owner: str) -> bool:
        """Give it back; False when it is no longer the owner's."""
