"""What an enqueue does when its key is met: at most one live job per (entity, model, version)."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto
from typing import NamedTuple, assert_never

from embed_pipeline.domain.job import (
    ENTITY_GONE,
    Again,
    Enqueued,
    JobId,
    JobRequest,
    JobStatus,
)
from embed_pipeline.domain.transition import JobChanges, restarted


class Change(Enum):
    NONE = auto()
    CREATE = auto()
    REVIVE = auto()
    """Back to pending with attempts, recoveries and strikes reset."""
    EXPEDITE = auto()
    """A pending job that is forced: due now, and marked as forced."""
    REPEAT = auto()
    """Held by a worker just now: once more when that worker is done."""


class KnownJob(NamedTuple):
    """What an enqueue has to know of the job that has its key already."""

    id: JobId
    status: JobStatus
    fail_code: str | None
    priority: int
    available_at: datetime
    again: Again


Admission = tuple[Enqueued, Change]


def admit(request: JobRequest, met: KnownJob | None) -> Admission:
    if met is None:
        return _admit_new(request)
    match met.status:
        case JobStatus.PENDING:
            return Enqueued.QUEUED, Change.EXPEDITE if request.force else Change.NONE
        case JobStatus.PROCESSING:
            # The worker may have read another text (A, B, and A again): its result may not count.
            return Enqueued.QUEUED, Change.REPEAT
        case JobStatus.COMPLETED | JobStatus.FAILED:
            return _admit_ended(request, met)
        case _:
            assert_never(met.status)


def _admit_new(request: JobRequest) -> Admission:
    if request.embedded and not request.force:
        return Enqueued.EMBEDDED, Change.NONE
    return Enqueued.CREATED, Change.CREATE


def _admit_ended(request: JobRequest, met: KnownJob) -> Admission:
    if request.force:
        return Enqueued.REVIVED, Change.REVIVE
    if request.embedded:
        return Enqueued.EMBEDDED, Change.NONE
    if met.status is JobStatus.FAILED and met.fail_code != ENTITY_GONE:
        return Enqueued.PARKED, Change.NONE
    return Enqueued.REVIVED, Change.REVIVE


def changes_of(met: KnownJob, change: Change, request: JobRequest, *, now: datetime) -> JobChanges:
    """What the admission changes of the job that was met."""
    match change:
        case Change.REVIVE:
            return {**restarted(now=now, force=request.force), "priority": request.priority}
        case Change.EXPEDITE:
            due, priority = min(met.available_at, now), max(met.priority, request.priority)
            return {"force": True, "available_at": due, "priority": priority}
        case Change.REPEAT:
            again = Again.FORCED if request.force else Again.YES
            return {"again": max(met.again, again)}
        case Change.NONE | Change.CREATE:
            return {}
        case _:
            assert_never(change)
