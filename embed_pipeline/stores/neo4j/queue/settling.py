"""What a holder does with leased jobs on Neo4j: extend, release, defer, complete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from embed_pipeline.domain.job import FailureRecord, JobId, in_order
from embed_pipeline.domain.lease import Lease, LeaseResult
from embed_pipeline.stores.encoding import failure_fields
from embed_pipeline.stores.neo4j.queue import health, rows
from embed_pipeline.stores.neo4j.queue.backend import QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import leased as cypher
from embed_pipeline.stores.neo4j.queue.shared_state import HEALTH


def extend(transaction: QueueTransaction, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
    held = held_by(lease, job_ids)
    extended = transaction.one(cypher.EXTEND_JOBS, **held, duration=rows.in_ms(lease.duration))
    return _settled(extended["done"], job_ids)


def release(transaction: QueueTransaction, lease: Lease, job_ids: Sequence[JobId]) -> int:
    done = transaction.one(cypher.RELEASE_JOBS, **held_by(lease, job_ids))["done"]
    if done:
        transaction.record("jobs.released", owner=lease.owner, job_ids=done)
        transaction.count(jobs_released=len(done))
    return len(done)


def defer(
    transaction: QueueTransaction,
    lease: Lease,
    job_ids: Sequence[JobId],
    *,
    error: FailureRecord,
    strike: bool,
    delay: timedelta,
) -> LeaseResult:
    done = transaction.one(
        cypher.DEFER_JOBS,
        **held_by(lease, job_ids),
        error=failure_fields(error),
        strikes=int(strike),
        delay=rows.in_ms(delay),
    )["done"]
    if done:
        transaction.record(
            "jobs.deferred", owner=lease.owner, reason=error.message, job_ids=done, strike=strike
        )
        transaction.count(jobs_deferred=len(done))
    return _settled(done, job_ids)


def complete(
    transaction: QueueTransaction, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None
) -> LeaseResult:
    ended = transaction.locked(cypher.COMPLETE_JOBS, **held_by(lease, job_ids))
    transaction.hold_state(HEALTH, ended["health"])
    done: list[JobId] = ended["done"]
    if others := set(job_ids) - set(done):
        repeated = transaction.one(cypher.COMPLETE_AND_REPEAT_JOBS, **held_by(lease, list(others)))
        done = in_order([*done, *repeated["done"]])
    if done:
        transaction.record("jobs.completed", owner=lease.owner, reason=reason, job_ids=done)
        transaction.count(jobs_completed=len(done))
        health.note_success(transaction, count=len(done))
    if others := set(job_ids) - set(done):
        # An earlier call whose acknowledgement was lost has completed these already.
        formerly = transaction.one(
            cypher.FORMERLY_DONE, job_ids=in_order(others), token=lease.token
        )
        done = [*done, *formerly["done"]]
    return _settled(done, job_ids)


def held_by(lease: Lease, job_ids: Sequence[JobId]) -> dict[str, object]:
    return {"job_ids": in_order(job_ids), "owner": lease.owner, "token": lease.token}


def _settled(done: Sequence[JobId], job_ids: Sequence[JobId]) -> LeaseResult:
    return LeaseResult(done=tuple(in_order(done)), lost=tuple(in_order(set(job_ids) - set(done))))
