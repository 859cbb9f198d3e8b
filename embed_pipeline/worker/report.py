"""What a run, or one batch of it, has done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime

from embed_pipeline.domain.job import FailureRecord, JobId
from embed_pipeline.ports.clock import Clock
from embed_pipeline.telemetry.latency import LatencyKind, as_counters
from embed_pipeline.worker.stop import StopReason

MOST_FAILURES = 100
"""How many failures a report lists; all are counted, and kept in the queue."""

STORED = {
    "embedded": ("vectors_embedded", "Vectors made by the provider."),
    "reused": ("vectors_reused", "Vectors reused, so not paid for again."),
    "requests": ("provider_requests", "Requests sent to the provider."),
    "tokens": ("provider_tokens", "Tokens sent to the provider, which it charges for."),
    "truncated": (
        "inputs_truncated",
        "Texts cut because they were longer than the model accepts.",
    ),
}
"""Counts that the queue does not keep by itself: its counter of each, and what Prometheus says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    job_id: JobId
    entity_name: str
    failure: FailureRecord
    final: bool


@dataclass(slots=True, kw_only=True)
class RunReport:
    """Counts that grow while a run works; changed by the run's own thread alone."""

    leased: int = 0
    embedded: int = 0
    reused: int = 0
    superseded: int = 0
    nothing_to_embed: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    deferred: int = 0
    lost: int = 0
    requests: int = 0
    tokens: int = 0
    truncated: int = 0
    seconds: float = 0.0
    failures: list[FailedJob] = field(default_factory=list)
    stop_reason: StopReason = StopReason.QUEUE_EMPTY
    back_at: datetime | None = None
    """When leasing may work again, where that is known."""
    critical: str | None = None
    """The error for which this run halted the queue."""
    durations: dict[LatencyKind, list[float]] = field(
        default_factory=lambda: {LatencyKind.REQUEST: [], LatencyKind.WRITE: []}
    )
    """Of one batch, in seconds; the threads of the pool append to them."""

    @property
    def completed(self) -> int:
        return self.embedded + self.reused + self.superseded + self.nothing_to_embed

    @property
    def per_second(self) -> float | None:
        return self.completed / self.seconds if self.seconds > 0 else None

    def add(self, other: RunReport) -> None:
        """Add the counts and failures of a batch; time and reason to stop are not added."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.critical = self.critical or other.critical
        self.failures += other.failures[: MOST_FAILURES - len(self.failures)]

    def plus(self, other: RunReport) -> RunReport:
        """The sum of two runs, one after the other; it stopped for the reason of the later one."""
        total = RunReport(
            seconds=self.seconds + other.seconds,
            stop_reason=other.stop_reason,
            back_at=other.back_at,
        )
        total.add(self)
        total.add(other)
        return total

    @contextmanager
    def timing(self, kind: LatencyKind, clock: Clock) -> Iterator[None]:
        """Keep how long the block takes, whether it succeeds or not."""
        started = clock.monotonic()
        try:
            yield
        finally:
            self.durations[kind].append(clock.monotonic() - started)

    def counters(self, *, model: str) -> dict[str, int]:
        """What a batch adds to the stored counters, with its histograms."""
        amounts = {counter: getattr(self, name) for name, (counter, _) in STORED.items()}
        for kind, durations in self.durations.items():
            amounts |= as_counters(kind, model, durations)
        return amounts

    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = {name: getattr(self, name) for name in COUNTS}
        rate = self.per_second
        return facts | {
            "seconds": round(self.seconds, 3),
            "per_second": None if rate is None else round(rate, 1),
        }


COUNTS = tuple(each.name for each in fields(RunReport) if each.type == "int")
"""Every count of the report: a new one needs no other line here."""
