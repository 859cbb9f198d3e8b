"""The steps of a job's life: which of its fields each of them changes.

The first step is an enqueue, which may meet a job of its key: there is at most one live job per
(entity, model, version).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import NamedTuple, TypedDict, assert_never

from embed_pipeline.domain.job import (
    ENTITY_GONE,
    Again,
    EmbedJob,
    Enqueued,
    FailureRecord,
    JobId,
    JobRequest,
    JobStatus,
)
from embed_pipeline.errors import ErrorCategory


class JobChanges(TypedDict, total=False):
    """Fields of an `EmbedJob` with their new values; the others stay as they are."""

    status: JobStatus
    priority: int
    available_at: datetime
    processed_at: datetime | None
    lock_owner: str | None
    lock_until: datetime | None
    lease_token: str | None
    attempts: int
    recoveries: int
    recovered_at: datetime | None
    strikes: int
    force: bool
    again: Again
    error: str | None
    error_type: str | None
    error_category: ErrorCategory | None
    error_stack: str | None
    fail_code: str | None
    fail_reason: str | None


def _without_holder(status: JobStatus) -> JobChanges:
    return {
        "status": status,
        "lock_owner": None,
        "lock_until": None,
        "lease_token": None,
        "again": Again.NO,
    }


def pending_again(job: EmbedJob, *, available_at: datetime) -> JobChanges:
    """A force that was asked for while the job was held is kept."""
    return {
        **_without_holder(JobStatus.PENDING),
        "available_at": available_at,
        "force": job.force or job.again is Again.FORCED,
    }


def restarted(*, now: datetime, force: bool) -> JobChanges:
    """Due now, as if it had never been tried."""
    return {
        **_without_holder(JobStatus.PENDING),
        "available_at": now,
        "force": force,
        "processed_at": None,
        "attempts": 0,
        "recoveries": 0,
        "recovered_at": None,
        "strikes": 0,
        "error": None,
        "error_type": None,
        "error_category": None,
        "error_stack": None,
        "fail_code": None,
        "fail_reason": None,
    }


def error_of(failure: FailureRecord) -> JobChanges:
    return {
        "error": failure.message,
        "error_type": failure.error_type,
        "error_category": failure.category,
        "error_stack": failure.stack,
    }


def failed(failure: FailureRecord, *, now: datetime, reason: str) -> JobChanges:
    """For good: only a person, or a new version of the text, revives it."""
    return {
        **_without_holder(JobStatus.FAILED),
        **error_of(failure),
        "processed_at": now,
        "force": False,
        "fail_code": failure.fail_code,
        "fail_reason": reason,
    }


# -- after an error ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """1 s, 2 s, 4 s … with up to a quarter more, so that jobs that failed together part."""

    base: timedelta = timedelta(seconds=1)
    ceiling: timedelta = timedelta(minutes=10)
    jitter: float = 0.25

    def backoff(self, attempt: int, *, chance: float) -> timedelta:
        """The wait after failure number `attempt`; `chance` is from 0 to 1."""
        # Beyond 2**30 the ceiling has long been reached; the bound keeps the number small.
        doubled = self.base * (1 << min(attempt - 1, 30))
        return min(doubled, self.ceiling) * (1 + self.jitter * chance)


def after_failure(
    job: EmbedJob, failure: FailureRecord, *, policy: RetryPolicy, now: datetime, chance: float
) -> JobChanges:
    """The attempt is charged: pending again, or failed."""
    attempts = job.attempts + 1
    if failure.category is ErrorCategory.TRANSIENT and attempts < job.max_attempts:
        available_at = now + policy.backoff(attempts, chance=chance)
        return {
            **pending_again(job, available_at=available_at),
            **error_of(failure),
            "attempts": attempts,
        }
    if _outlives_failure(job.again, failure.fail_code):
        return restarted(now=now, force=job.force or job.again is Again.FORCED)
    return {**failed(failure, now=now, reason=failure.error_type), "attempts": attempts}


def _outlives_failure(again: Again, fail_code: str | None) -> bool:
    """Whether a job that was asked for again goes on after its final failure.

    It does if that request, coming a little later, would have revived the failed job.
    """
    return again is Again.FORCED or (again is Again.YES and fail_code == ENTITY_GONE)


# -- what an enqueue does when its key is met -------------------------------------------------


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
