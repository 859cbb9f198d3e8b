"""How much is left to embed, how fast it goes, and when it will be done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from embed_pipeline.domain.job import QueueStatus
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.entities.refill import count_unqueued
from embed_pipeline.worker.context import Services

WINDOW = timedelta(minutes=5)
"""The rate is that of the last minutes, of all workers."""

MOST_EVENTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    left: int
    """Jobs that wait or are in work, and entities without a vector that have no job."""
    per_second: float | None
    """Completed jobs of the last minutes; None without any."""
    eta: timedelta | None
    """At that rate, but not faster than the budget allows; None where neither is known."""

    @property
    def is_done(self) -> bool:
        """Nothing is pending, processing or missing; failed jobs wait for a person."""
        return not self.left


def read_forecast(services: Services, status: QueueStatus) -> Forecast:
    counts = services.graph.counts(model=services.model)
    unqueued = max(count_unqueued(services, counts), counts.marked)
    left, rate = status.pending + status.processing + unqueued, recent_rate(services.jobs)
    speeds = [speed for speed in (rate, budget_rate(services)) if speed]
    eta = timedelta(seconds=left / min(speeds)) if speeds else None
    return Forecast(left=left, per_second=rate, eta=eta if left else timedelta(0))


def recent_rate(jobs: JobStore) -> float | None:
    now = jobs.now()
    recent = [
        event
        for event in jobs.events.recent(kind="jobs.completed", limit=MOST_EVENTS)
        if event.at > now - WINDOW
    ]
    if not recent:
        return None
    seconds = max((now - recent[-1].at).total_seconds(), 1.0)
    return sum(len(event.job_ids) for event in recent) / seconds


def budget_rate(services: Services) -> float | None:
    """Jobs per second that the budget allows, by tokens and requests of an average job so far.

    None without a budget, or before the first request.
    """
    limit, totals = services.limiter.limit, services.jobs.counters.read()
    embedded, seconds = totals.get("vectors_embedded", 0), 0.0
    if limit is None or not embedded:
        return None
    seconds = limit.interval.total_seconds()
    requests = totals.get("provider_requests", 0) / embedded
    tokens = totals.get("provider_tokens", 0) / embedded
    speeds = [limit.requests / seconds / requests] if requests else []
    if limit.tokens is not None and tokens:
        speeds.append(limit.tokens / seconds / tokens)
    return min(speeds, default=None)
