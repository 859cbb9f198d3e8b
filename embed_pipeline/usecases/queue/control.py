"""What an operator does to the queue: pause, resume, retry, cancel, clean up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from embed_pipeline.domain.control import Switch
from embed_pipeline.domain.job import CleanupReport, EntityUid, JobId
from embed_pipeline.errors import ErrorCategory, RequestError
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit

CANCEL_PAGE = 1_000
"""Jobs cancelled per transaction."""


def pause(jobs: JobStore, *, reason: str) -> Switch:
    """Stop leasing new jobs until `resume`. Jobs already leased are completed."""
    return jobs.switch.pause(_checked_reason(reason))


def resume(jobs: JobStore, *, reason: str) -> tuple[Switch, Switch]:
    """Lease again after a pause or a halt; returns the switch before and after."""
    before = jobs.switch.read()
    return before, jobs.switch.resume(_checked_reason(reason))


def retry_failed(
    jobs: JobStore, *, category: ErrorCategory | None = None, limit: int = 10_000
) -> tuple[JobId, ...]:
    """Return failed jobs to pending, with attempts, recoveries and strikes reset."""
    _check_limit(limit)
    retried = jobs.retry_failed(category=category, limit=limit)
    emit("jobs.retried", count=len(retried), category=category, job_ids=retried)
    return retried


def cancel_entity(jobs: JobStore, uid: EntityUid) -> tuple[JobId, ...]:
    """Cancel all pending jobs of an entity, of any text and model."""
    cancelled = jobs.cancel(entity_uid=uid, limit=CANCEL_PAGE)
    emit("jobs.cancelled", count=len(cancelled), job_ids=cancelled)
    return cancelled


def cancel_pending(
    jobs: JobStore, *, limit: int | None = None, on_page: Callable[[int], None] = lambda count: None
) -> int:
    """Cancel any pending jobs, or all of them, also jobs that are enqueued meanwhile."""
    if limit is not None:
        _check_limit(limit)
    count = 0
    while limit is None or count < limit:
        page = CANCEL_PAGE if limit is None else min(CANCEL_PAGE, limit - count)
        cancelled = jobs.cancel(limit=page)
        count += len(cancelled)
        on_page(count)
        if len(cancelled) < page:
            break
    emit("jobs.cancelled", count=count)
    return count


def cleanup_ttl(jobs: JobStore, *, older_than: timedelta) -> CleanupReport:
    """Delete completed and failed jobs, and events, that are older."""
    report = jobs.cleanup(older_than=older_than)
    emit(
        "jobs.cleaned_up",
        count=report.jobs,
        completed=report.completed,
        failed=report.failed,
        events=report.events,
    )
    return report


def _checked_reason(reason: str) -> str:
    """Required, because everyone who finds the queue stopped asks why."""
    if not reason.strip():
        raise RequestError("A reason must not be empty.")
    return reason.strip()


def _check_limit(limit: int) -> None:
    if limit < 1:
        raise RequestError(f"The limit must be at least 1, got {limit}.")
