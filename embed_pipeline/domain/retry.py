"""After an error: another attempt later, or the end of the job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from embed_pipeline.domain.job import ENTITY_GONE, Again, EmbedJob, FailureRecord
from embed_pipeline.domain.transition import (
    JobChanges,
    error_of,
    failed,
    pending_again,
    restarted,
)
from embed_pipeline.errors import ErrorCategory


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
