"""A job before and after: what each step of its life changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from embed_pipeline.domain.job import Again, EmbedJob, FailureRecord, JobStatus


def pending_again(job: EmbedJob, *, available_at: datetime) -> EmbedJob:
    """Without a holder. A force that was asked for while the job was held is kept."""
    return replace(
        job,
        status=JobStatus.PENDING,
        available_at=available_at,
        lock_owner=None,
        lock_until=None,
        lease_token=None,
        force=job.force or job.again is Again.FORCED,
        again=Again.NO,
    )


def restarted(job: EmbedJob, *, now: datetime) -> EmbedJob:
    """Due now, as if it had never been tried."""
    return replace(
        pending_again(job, available_at=now),
        processed_at=None,
        attempts=0,
        recoveries=0,
        recovered_at=None,
        strikes=0,
        error=None,
        error_type=None,
        error_category=None,
        error_stack=None,
        fail_code=None,
        fail_reason=None,
    )


def with_error(job: EmbedJob, failure: FailureRecord) -> EmbedJob:
    return replace(
        job,
        error=failure.message,
        error_type=failure.error_type,
        error_category=failure.category,
        error_stack=failure.stack,
    )


def failed(job: EmbedJob, failure: FailureRecord, *, now: datetime, reason: str) -> EmbedJob:
    """For good: only a person, or a new version of the text, revives it."""
    return replace(
        with_error(job, failure),
        status=JobStatus.FAILED,
        processed_at=now,
        lock_owner=None,
        lock_until=None,
        lease_token=None,
        force=False,
        again=Again.NO,
        fail_code=failure.fail_code,
        fail_reason=reason,
    )
