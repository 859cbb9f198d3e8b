"""Verbs over many jobs, in small transactions: retry failed ones, cancel, erase, clean up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from embed_pipeline.domain.job import CleanupReport, EntityUid, JobId, JobStatus, in_order
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.queue.transaction import QueueDatabase, Transaction

T = TypeVar("T")

PAGE = 1_000
"""Jobs of one transaction, so that no other waits long for its locks."""


def page_by_page(act: Callable[[int], Sequence[T]], *, limit: int | None) -> tuple[T, ...]:
    """All that `act` has done, at most `limit`; fewer than it was asked for is the end."""
    done: list[T] = []
    while limit is None or len(done) < limit:
        page = PAGE if limit is None else min(PAGE, limit - len(done))
        found = act(page)
        done += found
        if len(found) < page:
            break
    return tuple(done)


def retry_failed(
    transaction: Transaction, *, category: ErrorCategory | None, limit: int
) -> list[JobId]:
    job_ids = transaction.jobs.retry_failed(category=category, limit=limit)
    if job_ids:
        transaction.record("jobs.retried", job_ids=job_ids)
    return job_ids


def cancel(
    transaction: Transaction, *, entity_uid: EntityUid | None, limit: int
) -> tuple[JobId, ...]:
    job_ids = in_order(transaction.jobs.cancel(entity_uid=entity_uid, limit=limit))
    if job_ids:
        transaction.record("jobs.cancelled", job_ids=job_ids)
        transaction.count(jobs_cancelled=len(job_ids))
    return tuple(job_ids)


def erase(transaction: Transaction, *, entity_uid: EntityUid) -> tuple[JobId, ...]:
    job_ids = in_order(transaction.jobs.delete_of_entity(entity_uid))
    transaction.record("jobs.erased", job_ids=job_ids)
    return tuple(job_ids)


def cleanup(database: QueueDatabase, *, older_than: timedelta) -> CleanupReport:
    """Delete what is past retention, a page per transaction."""

    def delete_page(transaction: Transaction) -> CleanupReport:
        before = transaction.now - older_than
        gone = transaction.jobs.delete_ended(before=before, limit=PAGE)
        failed = gone.count(JobStatus.FAILED)
        page = CleanupReport(
            completed=len(gone) - failed,
            failed=failed,
            events=transaction.jobs.delete_events(before=before, limit=PAGE),
        )
        record_cleanup(transaction, page)
        return page

    total = CleanupReport()
    while True:
        page = database.write(delete_page)
        total = total.plus(page)
        if page.jobs < PAGE and page.events < PAGE:
            return total


def record_cleanup(transaction: Transaction, report: CleanupReport) -> None:
    if report.jobs or report.events:
        transaction.record(
            "jobs.cleaned_up", jobs=report.jobs, failed=report.failed, events=report.events
        )
        transaction.count(jobs_cleaned_up=report.jobs)
