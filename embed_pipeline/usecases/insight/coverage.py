"""The state of the queue in exact numbers: for people and their graphs, never for a sensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from embed_pipeline.domain.health import HealthReport
from embed_pipeline.domain.job import EmbedJob, QueueStatus
from embed_pipeline.domain.switch import Switch
from embed_pipeline.ports.job_store import JobStore

LATEST_FAILURES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """`totals` are sums over the queue's whole life; see `Counters`."""

    at: datetime
    status: QueueStatus
    switch: Switch
    health: HealthReport
    oldest_wait: timedelta
    """How long the first job that may be leased has waited; 0 without one."""
    has_stale: bool
    parked: int
    """All failed jobs but those whose entity was deleted: nobody misses these."""
    failures: tuple[EmbedJob, ...]
    """The latest of them."""
    totals: Mapping[str, int]

    @property
    def queued(self) -> int:
        return self.status.pending + self.status.processing


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was done between two looks."""

    completed: int
    tokens: int
    elapsed: timedelta

    @property
    def per_minute(self) -> float:
        minutes = self.elapsed / timedelta(minutes=1)
        return self.completed / minutes if minutes > 0 else 0.0


def observe_queue(jobs: JobStore, *, model: str) -> QueueState:
    now, due = jobs.now(), jobs.next_due(model=model)
    return QueueState(
        at=now,
        status=jobs.get_queue_status(),
        switch=jobs.switch.read(),
        health=jobs.health.report(),
        oldest_wait=max(now - due, timedelta(0)) if due else timedelta(0),
        has_stale=jobs.has_stale(),
        parked=jobs.history.count_parked(),
        failures=jobs.history.parked(limit=LATEST_FAILURES),
        totals=jobs.counters.read(),
    )


def progress_between(
    before: Mapping[str, int], after: Mapping[str, int], *, elapsed: timedelta
) -> Progress:
    """A queue that was rebuilt counts from 0 again, so nothing is ever negative."""
    return Progress(
        completed=_grown(before, after, "jobs_completed"),
        tokens=_grown(before, after, "provider_tokens"),
        elapsed=elapsed,
    )


def _grown(before: Mapping[str, int], after: Mapping[str, int], name: str) -> int:
    now, then = after.get(name, 0), before.get(name, 0)
    return now - then if now >= then else now
