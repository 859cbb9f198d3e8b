"""How much of the graph is embedded, and the state of the queue.

Coverage is made of the graph's counts, in milliseconds at any size, and of what the last complete
audit found. Only `exact_coverage` reads the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from embed_pipeline.domain.control import Switch
from embed_pipeline.domain.diagnosis import Remedy, remedies_for_gaps
from embed_pipeline.domain.health import HealthReport
from embed_pipeline.domain.job import EmbedJob, QueueStatus
from embed_pipeline.domain.partition import (
    AuditCounts,
    Audited,
    AuditPass,
    Coverage,
    PartitionCounts,
)
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.insight.health import read_health
from embed_pipeline.worker.context import Services

OnPage = Callable[[AuditCounts], None]

LATEST_FAILURES = 20

PAGE = 5_000
"""Entities of a transaction of `exact_coverage`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageReport:
    coverage: Coverage
    queue: QueueStatus
    switch: Switch
    remedies: Mapping[Remedy, int]
    """What closes the gaps, in the order to do it, and for how many jobs or entities."""

    @property
    def queued(self) -> int:
        return self.queue.pending + self.queue.processing


def read_coverage(
    services: Services, *, exact: bool = False, on_page: OnPage = lambda counts: None
) -> CoverageReport:
    """`exact` reads the whole graph instead of the counts."""
    coverage = exact_coverage(services, on_page) if exact else quick_coverage(services)
    queue, switch = services.jobs.get_queue_status(), services.jobs.switch.read()
    return CoverageReport(
        coverage=coverage,
        queue=queue,
        switch=switch,
        remedies=remedies_for_gaps(
            coverage,
            queued=queue.pending + queue.processing,
            parked=services.jobs.history.count_parked(),
            stopped=not switch.is_running,
        ),
    )


def quick_coverage(services: Services) -> Coverage:
    counted, last = _counted(services), _last_audit(services)
    counts = sum(counted.values(), PartitionCounts())
    found = last.counts if last else AuditCounts()
    return Coverage(
        entities=max(counts.entities - counts.excluded, 0),
        embedded=counts.embedded,
        missing=counts.missing,
        **_defects(found),
        nothing_to_embed=counts.nothing_to_embed,
        excluded=counts.excluded,
        unseen=counts.unseen,
        audit=_audited(last, now=services.clock.now()),
        collections=counted,
    )


def exact_coverage(services: Services, on_page: OnPage = lambda counts: None) -> Coverage:
    """Page by page, so writers are not blocked: their changes count as before or as after."""
    found, after = AuditCounts(), None
    while True:
        page = services.graph.audit_page(model=services.model, after=after, size=PAGE, repair=False)
        found, after = found + page, page.next_after
        on_page(found)
        if after is None:
            break
    counted = _counted(services)
    return Coverage(
        entities=found.examined - found.excluded,
        embedded=found.embedded,
        missing=found.missing,
        **_defects(found),
        nothing_to_embed=found.nothing_to_embed,
        excluded=found.excluded,
        unseen=sum(one.unseen for one in counted.values()),
        audit=_audited(_last_audit(services), now=services.clock.now()),
        collections=counted,
    )


def _counted(services: Services) -> Mapping[str, PartitionCounts]:
    return services.graph.counts_by_collection(model=services.model)


def _defects(found: AuditCounts) -> dict[str, int]:
    names = ("stale", "wrong_model", "wrong_dimension", "invalid")
    return {name: getattr(found, name) for name in names}


def _last_audit(services: Services) -> AuditPass | None:
    record = services.graph.audit_record(model=services.model)
    return record.last if record else None


def _audited(last: AuditPass | None, *, now: datetime) -> Audited | None:
    if last is None or last.ended_at is None or last.duration is None:
        return None
    age = max((now - last.ended_at).total_seconds(), 0.0)
    return Audited(at=last.ended_at, duration=last.duration.total_seconds(), age=round(age, 1))


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
    """Failed jobs, without those whose entity was deleted."""
    failures: tuple[EmbedJob, ...]
    """The latest of them."""
    totals: Mapping[str, int]

    @property
    def queued(self) -> int:
        return self.status.pending + self.status.processing


def read_queue_state(jobs: JobStore, *, model: str) -> QueueState:
    now, due = jobs.now(), jobs.next_due(model=model)
    return QueueState(
        at=now,
        status=jobs.get_queue_status(),
        switch=jobs.switch.read(),
        health=read_health(jobs, model=model),
        oldest_wait=max(now - due, timedelta(0)) if due else timedelta(0),
        has_stale=jobs.has_stale(),
        parked=jobs.history.count_parked(),
        failures=jobs.history.parked(limit=LATEST_FAILURES),
        totals=jobs.counters.read(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was done between two readings of the counters."""

    completed: int
    tokens: int
    elapsed: timedelta

    @property
    def per_minute(self) -> float:
        minutes = self.elapsed / timedelta(minutes=1)
        return self.completed / minutes if minutes > 0 else 0.0


def progress_between(
    before: Mapping[str, int], after: Mapping[str, int], *, elapsed: timedelta
) -> Progress:
    """A rebuilt queue counts from 0 again: then all it counted since is the progress."""

    def growth(name: str) -> int:
        now, then = after.get(name, 0), before.get(name, 0)
        return now - then if now >= then else now

    return Progress(
        completed=growth("jobs_completed"), tokens=growth("provider_tokens"), elapsed=elapsed
    )
