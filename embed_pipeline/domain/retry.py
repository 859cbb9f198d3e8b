"""After an error: another attempt later, or the end of the job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from embed_pipeline.domain import transition
from embed_pipeline.domain.job import ENTITY_GONE, Again, EmbedJob, FailureRecord
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
) -> EmbedJob:
    """The job with the attempt charged: pending again, or failed."""
    charged = replace(job, attempts=job.attempts + 1)
    is_last = charged.attempts >= job.max_attempts
    if failure.category is ErrorCategory.TRANSIENT and not is_last:
        available_at = now + policy.backoff(charged.attempts, chance=chance)
        return transition.with_error(
            transition.pending_again(charged, available_at=available_at), failure
        )
    if _outlives_failure(job.again, failure.fail_code):
        return transition.restarted(job, now=now)
    return transition.failed(charged, failure, now=now, reason=failure.error_type)


def _outlives_failure(again: Again, fail_code: str | None) -> bool:
    """Whether a job that was asked for again goes on after its final failure.

    It does if that request, coming a little later, would have revived the failed job.
    """
    return again is Again.FORCED or (again is Again.YES and fail_code == ENTITY_GONE)
