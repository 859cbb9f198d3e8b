"""Failed jobs, grouped by category and type of error; one page of jobs in memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from embed_pipeline.domain.job import EmbedJob, JobStatus
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_history import JobHistory


@dataclass(slots=True, kw_only=True)
class FailureGroup:
    """`example` is the message of the latest failure."""

    category: ErrorCategory | None
    error_type: str | None
    jobs: int = 0
    latest: datetime | None = None
    example: str | None = None

    def add(self, job: EmbedJob) -> None:
        self.jobs += 1
        ended = job.processed_at
        if self.latest is None or (ended is not None and ended >= self.latest):
            self.latest, self.example = ended, job.error


def group_failures(
    history: JobHistory, *, category: ErrorCategory | None = None
) -> list[FailureGroup]:
    """Reads the failed jobs only; the largest group comes first."""
    groups: dict[tuple[ErrorCategory | None, str | None], FailureGroup] = {}
    page = history.ended(status=JobStatus.FAILED)
    while page:
        for job in page:
            if category in (None, job.error_category):
                key = (job.error_category, job.error_type)
                new = FailureGroup(category=job.error_category, error_type=job.error_type)
                groups.setdefault(key, new).add(job)
        page = history.ended(status=JobStatus.FAILED, after=page[-1])
    return sorted(groups.values(), key=lambda group: -group.jobs)
