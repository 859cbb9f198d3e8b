"""After an error: another attempt, the end of the job, or the end of all work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import assert_never

from embed_pipeline.domain.job import EmbedJob
from embed_pipeline.errors import ErrorCategory


class Verdict(StrEnum):
    RETRY = "retry"
    FAIL = "fail"
    HALT = "halt"


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


def verdict_for(job: EmbedJob, category: ErrorCategory) -> Verdict:
    match category:
        case ErrorCategory.CRITICAL:
            return Verdict.HALT
        case ErrorCategory.PERMANENT:
            return Verdict.FAIL
        case ErrorCategory.TRANSIENT:
            return Verdict.RETRY if job.attempts + 1 < job.max_attempts else Verdict.FAIL
        case _:
            assert_never(category)
