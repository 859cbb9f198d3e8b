"""The steps of a job's life: which of its fields each of them changes."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from embed_pipeline.domain.job import Again, EmbedJob, FailureRecord, JobStatus
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
