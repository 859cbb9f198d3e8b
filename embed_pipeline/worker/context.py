"""What a worker works with: the ports, and the limits of a run."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta

from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    jobs: JobStore
    graph: EntityStore
    provider: EmbeddingProvider
    limiter: RateLimiter
    clock: Clock = field(default_factory=SystemClock)
    run_limits: RunLimits = field(default_factory=RunLimits)

    @property
    def model(self) -> str:
        return self.provider.model

    def close(self) -> None:
        """Close all parts, each even if another fails to close."""
        with ExitStack() as stack:
            for part in (self.jobs, self.graph, self.provider, self.limiter):
                stack.callback(part.close)
