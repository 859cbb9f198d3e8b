"""Deleting what is past retention, a page per transaction."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.job import CleanupReport
from embed_pipeline.stores.sqlite.queue import control_sql as queue_sql
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue.backend import QueueFile


def cleanup(queue: QueueFile, *, older_than: timedelta, page: int) -> CleanupReport:
    completed = failed = events = 0
    while True:
        with queue.transaction() as transaction:
            cutoff = transaction.in_ms(-older_than)
            found = transaction.all(sql.DELETE_ENDED, cutoff=cutoff, limit=page)
            events += (gone := transaction.run(queue_sql.DELETE_EVENTS, cutoff=cutoff, limit=page))
            page_failed = sum(row["status"] == "failed" for row in found)
            completed, failed = completed + len(found) - page_failed, failed + page_failed
            if found or gone:
                transaction.record(
                    "jobs.cleaned_up", jobs=len(found), failed=page_failed, events=gone
                )
                transaction.count(jobs_cleaned_up=len(found))
        if len(found) < page and gone < page:
            return CleanupReport(completed=completed, failed=failed, events=events)
