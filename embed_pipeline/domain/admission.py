"""What an enqueue does when its key is met: at most one live job per (entity, model, version)."""

from __future__ import annotations

from enum import Enum, auto
from typing import assert_never

from embed_pipeline.domain.job import ENTITY_GONE, Again, Enqueued, JobRequest, JobStatus


class Change(Enum):
    NONE = auto()
    CREATE = auto()
    REVIVE = auto()
    """Back to pending with attempts, recoveries and strikes reset."""
    EXPEDITE = auto()
    """A pending job that somebody forces: due now, and marked as forced."""
    REPEAT = auto()
    """Held by a worker just now: once more when that one is done."""


Admission = tuple[Enqueued, Change]


def admit_new(request: JobRequest) -> Admission:
    """For a key that has no job."""
    if request.embedded and not request.force:
        return Enqueued.EMBEDDED, Change.NONE
    return Enqueued.CREATED, Change.CREATE


def admit_again(request: JobRequest, status: JobStatus, fail_code: str | None) -> Admission:
    """For a key that has a job already."""
    match status:
        case JobStatus.PENDING:
            return Enqueued.QUEUED, Change.EXPEDITE if request.force else Change.NONE
        case JobStatus.PROCESSING:
            # The worker may have read another text (A, B, and A again): its result may not count.
            return Enqueued.QUEUED, Change.REPEAT
        case JobStatus.COMPLETED | JobStatus.FAILED:
            return _admit_ended(request, status, fail_code)
        case _:
            assert_never(status)


def _admit_ended(request: JobRequest, status: JobStatus, fail_code: str | None) -> Admission:
    if request.force:
        return Enqueued.REVIVED, Change.REVIVE
    if request.embedded:
        return Enqueued.EMBEDDED, Change.NONE
    if status is JobStatus.FAILED and fail_code != ENTITY_GONE:
        return Enqueued.PARKED, Change.NONE
    return Enqueued.REVIVED, Change.REVIVE


def outlives_failure(again: Again, fail_code: str | None) -> bool:
    """Whether a job that was asked for again goes on after its final failure.

    As if that request had come a moment later and met the failed job.
    """
    return again is Again.FORCED or (again is Again.YES and fail_code == ENTITY_GONE)
