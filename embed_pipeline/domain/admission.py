"""What an enqueue does when its key is met: at most one live job per (entity, model, version)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import Enum, auto
from typing import assert_never

from embed_pipeline.domain.job import (
    ENTITY_GONE,
    Again,
    EmbedJob,
    Enqueued,
    JobRequest,
    JobStatus,
)
from embed_pipeline.domain.transition import restarted


class Change(Enum):
    NONE = auto()
    CREATE = auto()
    REVIVE = auto()
    """Back to pending with attempts, recoveries and strikes reset."""
    EXPEDITE = auto()
    """A pending job that is forced: due now, and marked as forced."""
    REPEAT = auto()
    """Held by a worker just now: once more when that worker is done."""


Admission = tuple[Enqueued, Change]


def admit(request: JobRequest, met: EmbedJob | None) -> Admission:
    """`met` is the job that has the key already."""
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


def _admit_ended(request: JobRequest, met: EmbedJob) -> Admission:
    if request.force:
        return Enqueued.REVIVED, Change.REVIVE
    if request.embedded:
        return Enqueued.EMBEDDED, Change.NONE
    if met.status is JobStatus.FAILED and met.fail_code != ENTITY_GONE:
        return Enqueued.PARKED, Change.NONE
    return Enqueued.REVIVED, Change.REVIVE


def changed(job: EmbedJob, change: Change, request: JobRequest, *, now: datetime) -> EmbedJob:
    """The job that was met, after the change that its admission asks for."""
    match change:
        case Change.REVIVE:
            fresh = restarted(job, now=now)
            return replace(fresh, priority=request.priority, force=request.force)
        case Change.EXPEDITE:
            due, priority = min(job.available_at, now), max(job.priority, request.priority)
            return replace(job, force=True, available_at=due, priority=priority)
        case Change.REPEAT:
            again = Again.FORCED if request.force else Again.YES
            return replace(job, again=max(job.again, again))
        case Change.NONE | Change.CREATE:
            return job
        case _:
            assert_never(change)
