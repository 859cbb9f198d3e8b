"""Jobs as a table in a file, for pandas and the like; a page of jobs in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from embed_pipeline.domain.job import EmbedJob, JobStatus
from embed_pipeline.ports.job_history import JobHistory
from embed_pipeline.usecases.files.formats.writing import writing

COLUMNS: dict[str, type] = {
    "id": str,
    "entity_uid": str,
    "model": str,
    "version": str,
    "status": str,
    "priority": int,
    "created_at": datetime,
    "available_at": datetime,
    "processed_at": datetime,
    "lock_owner": str,
    "lock_until": datetime,
    "last_heartbeat_at": datetime,
    "attempts": int,
    "max_attempts": int,
    "recoveries": int,
    "recovered_at": datetime,
    "strikes": int,
    "force": bool,
    "error": str,
    "error_type": str,
    "error_category": str,
    "error_stack": str,
    "fail_code": str,
    "fail_reason": str,
}

ENDED = (JobStatus.COMPLETED, JobStatus.FAILED)


def export_jobs(
    history: JobHistory,
    path: Path,
    *,
    status: JobStatus | None = None,
    since: datetime | None = None,
    overwrite: bool = False,
    on_page: Callable[[int], None] = lambda count: None,
) -> int:
    """All jobs, those of one status, or those that ended since; how many were written.

    A row is the state of its job when its page was read.
    """
    count = 0
    with writing(path, COLUMNS, overwrite=overwrite) as write:
        for page in _pages(history, status=status, since=since):
            write([asdict(job) for job in page])
            count += len(page)
            on_page(count)
    return count


def _pages(
    history: JobHistory, *, status: JobStatus | None, since: datetime | None
) -> Iterator[tuple[EmbedJob, ...]]:
    last: EmbedJob | None = None
    while True:
        if since is not None or status in ENDED:
            page = history.ended(
                since=since, status=status if status in ENDED else None, after=last
            )
        else:
            page = history.walk(after=last.id if last else None)
        if not page:
            return
        yield tuple(job for job in page if status in (None, job.status))
        last = page[-1]
