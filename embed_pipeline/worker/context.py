"""What a worker works with: the ports, and the limits of a run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.telemetry.latency import LatencyKind, as_counters


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    batch_size: int = 2_000
    heartbeat_interval: timedelta = timedelta(minutes=2)
    drain_for: timedelta = timedelta(minutes=4)
    """How long one run goes on leasing."""
    grace: timedelta = timedelta(seconds=20)
    """How long a run that is stopped waits for the requests that it has sent."""
    concurrency: int = 4
    """Most requests under way at once."""
    writers: int = 2
    """Most transactions with vectors under way at once."""
    ahead: int = 1
    """How far leasing and sending may be ahead of writing; with 0 nothing overlaps."""
    write_size: int = 250
    """Vectors per transaction."""
    retention: timedelta = timedelta(days=14)
    """How long ended jobs are kept."""
    queue_depth: int = 100_000
    """Pending jobs that discovery fills the queue up to."""
    audit_for: timedelta = timedelta(seconds=60)
    """How long one round of the audit reads the graph."""

    @property
    def most_batches(self) -> int:
        """Most leases that one run holds: one per request, and those ahead of them."""
        return self.concurrency + 2 * self.ahead


class UnsavedTimes:
    """Durations of searches, saved together: a search costs no transaction of its own."""

    SAVE_EVERY = timedelta(seconds=10)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: Counter[str] = Counter()
        self._started_at: float | None = None
        """When the first of the unsaved ones was added, by the process's clock."""

    def add(self, amounts: Mapping[str, int], *, now: float) -> bool:
        """Whether it is time to save them: True for one caller."""
        with self._lock:
            self._amounts.update(amounts)
            if self._started_at is None:
                self._started_at = now
            is_due = now - self._started_at >= self.SAVE_EVERY.total_seconds()
            if is_due:
                self._started_at = None
            return is_due

    def save(self, jobs: JobStore) -> None:
        """They are lost if the queue does not answer: a search needs no queue."""
        with self._lock:
            amounts, self._amounts = self._amounts, Counter()
        with suppress(EmbedPipelineError):
            jobs.counters.add(amounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    jobs: JobStore
    graph: EntityStore
    provider: EmbeddingProvider
    limiter: RateLimiter
    clock: Clock = field(default_factory=SystemClock)
    run_limits: RunLimits = field(default_factory=RunLimits)
    unsaved_times: UnsavedTimes = field(default_factory=UnsavedTimes)

    @property
    def model(self) -> str:
        return self.provider.model

    def close(self) -> None:
        """Close all parts, each even if another fails to close."""
        with ExitStack() as stack:
            for part in (self.jobs, self.graph, self.provider, self.limiter):
                stack.callback(part.close)
            stack.callback(self.unsaved_times.save, self.jobs)

    @contextmanager
    def timing(self, kind: LatencyKind) -> Iterator[None]:
        """Count how long the block takes, whether it succeeds or not; saved within seconds."""
        started = self.clock.monotonic()
        try:
            yield
        finally:
            now = self.clock.monotonic()
            amounts = as_counters(kind, self.model, [now - started])
            if self.unsaved_times.add(amounts, now=now):
                # In a thread: a queue that is down takes seconds to say so.
                save = self.unsaved_times.save
                threading.Thread(target=save, args=(self.jobs,), daemon=True).start()
