"""How much of the graph is embedded, and the exact state of the queue.

Counted, never estimated: for people and their dashboards, too expensive for a sensor. Only
`has_gaps` is bounded, because a schedule asks it before it starts a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from embed_pipeline.domain.control import Switch
from embed_pipeline.domain.diagnosis import Remedy, remedies_for_gaps
from embed_pipeline.domain.embedding import Coverage, VectorDefect
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.health import HealthReport
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, EntityUid, JobStatus, QueueStatus
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.worker.context import Services

LATEST_FAILURES = 20

PAGE = 500

MOST_READ = 10_000
"""Entities that `has_gaps` reads at most: starting a run costs more than reading these."""

MOST_ASKED = 20
"""Entities with a defect whose jobs `has_gaps` reads, one by one."""


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


def read_coverage(services: Services) -> CoverageReport:
    """Reads the whole graph once."""
    coverage = services.graph.coverage(model=services.model)
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
        health=jobs.health.report(),
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


def has_gaps(services: Services, *, most_read: int = MOST_READ) -> bool:
    """Whether discovery may find something; False only if every entity was read.

    A cheaper test would prove nothing: other programs write entities without our marker and
    change texts under existing vectors.
    """
    defective: list[Entity] = []
    after: EntityUid | None = None
    for _ in range(0, most_read, PAGE):
        page = services.graph.walk(
            model=services.model,
            defects=frozenset(VectorDefect),
            after=after,
            size=min(PAGE, most_read),
        )
        defective += [candidate.entity for candidate in page.candidates]
        if len(defective) > MOST_ASKED:
            return True
        after = page.next_after
        if after is None:
            return not all(_discovery_skips(services, entity) for entity in defective)
    return True


def _discovery_skips(services: Services, entity: Entity) -> bool:
    """Whether the current text has a job that is queued or parked."""
    return any(
        job.version == entity.version and job.model == services.model and not _can_be_revived(job)
        for job in services.jobs.history.of_entity(entity.uid)
    )


def _can_be_revived(job: EmbedJob) -> bool:
    if job.status is JobStatus.FAILED:
        return job.fail_code == ENTITY_GONE
    return job.status is JobStatus.COMPLETED
