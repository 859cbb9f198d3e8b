"""Cancelling on SQLite: the transaction is alone, so what is pending cannot be leased meanwhile."""

from __future__ import annotations

from embed_pipeline.domain.job import EntityUid, JobId, in_order
from embed_pipeline.stores.sqlite.queue import history_sql as sql
from embed_pipeline.stores.sqlite.queue.backend import QueueTransaction


def cancel(
    transaction: QueueTransaction, *, entity_uid: EntityUid | None, limit: int
) -> tuple[JobId, ...]:
    statement = sql.CANCEL_JOBS if entity_uid is None else sql.CANCEL_JOBS_OF_ENTITY
    found = transaction.all(statement, entity_uid=entity_uid, limit=limit)
    job_ids = tuple(in_order(JobId(row["id"]) for row in found))
    if job_ids:
        transaction.record("jobs.cancelled", job_ids=job_ids)
        transaction.count(jobs_cancelled=len(job_ids))
    return job_ids
