"""Cancelling on Neo4j: behind the lease's own lock, so that no lease meets a job that goes."""

from __future__ import annotations

from embed_pipeline.domain.job import EntityUid, JobId
from embed_pipeline.stores.neo4j.queue.backend import QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import history as cypher


def cancel(
    transaction: QueueTransaction, *, entity_uid: EntityUid | None, limit: int
) -> tuple[JobId, ...]:
    statement = cypher.CANCEL_JOBS if entity_uid is None else cypher.CANCEL_JOBS_OF_ENTITY
    found = transaction.one(statement, entity_uid=entity_uid, limit=limit)
    job_ids = tuple(JobId(job_id) for job_id in found["done"])
    if job_ids:
        transaction.record("jobs.cancelled", job_ids=job_ids)
        transaction.count(jobs_cancelled=len(job_ids))
    return job_ids
