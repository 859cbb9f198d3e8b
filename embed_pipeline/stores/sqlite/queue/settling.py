"""What a holder does with leased jobs on SQLite: extend, release, defer, complete."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import timedelta

from embed_pipeline.domain.job import FailureRecord, JobId, in_order
from embed_pipeline.domain.lease import Lease, LeaseResult
from embed_pipeline.stores.encoding import failure_fields
from embed_pipeline.stores.sqlite.queue import health, rows
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue.backend import QueueTransaction


def extend(transaction: QueueTransaction, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
    done = transaction.all(
        sql.EXTEND_JOBS,
        **_held(lease, job_ids),
        until=transaction.in_ms(lease.duration),
        now=transaction.now_ms,
    )
    return _settled(done, job_ids)


def release(transaction: QueueTransaction, lease: Lease, job_ids: Sequence[JobId]) -> int:
    done = _ids(transaction.all(sql.RELEASE_JOBS, **_held(lease, job_ids)))
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
    done = transaction.all(
        sql.DEFER_JOBS,
        **_held(lease, job_ids),
        **failure_fields(error),
        strike=strike,
        available_at=transaction.in_ms(delay),
    )
    if done:
        transaction.record(
            "jobs.deferred",
            owner=lease.owner,
            reason=error.message,
            job_ids=_ids(done),
            strike=strike,
        )
        transaction.count(jobs_deferred=len(done))
    return _settled(done, job_ids)


def complete(
    transaction: QueueTransaction, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None
) -> LeaseResult:
    held = _held(lease, job_ids)
    done = transaction.all(sql.COMPLETE_JOBS, **held, now=transaction.now_ms)
    if len(done) < len(job_ids):
        done += transaction.all(sql.COMPLETE_AND_REPEAT_JOBS, **held, now=transaction.now_ms)
    if done:
        transaction.record("jobs.completed", owner=lease.owner, reason=reason, job_ids=_ids(done))
        transaction.count(jobs_completed=len(done))
        health.note_success(transaction, count=len(done))
    if len(done) < len(job_ids):
        # An earlier call whose acknowledgement was lost has completed these already.
        done = transaction.all(sql.FORMERLY_DONE, job_ids=held["job_ids"], token=lease.token)
    return _settled(done, job_ids)


def _held(lease: Lease, job_ids: Sequence[JobId]) -> dict[str, object]:
    return {
        "job_ids": rows.as_list(in_order(job_ids)),
        "owner": lease.owner,
        "token": lease.token,
    }


def _ids(found: Sequence[sqlite3.Row]) -> tuple[JobId, ...]:
    return tuple(in_order(JobId(row["id"]) for row in found))


def _settled(found: Sequence[sqlite3.Row], job_ids: Sequence[JobId]) -> LeaseResult:
    done = _ids(found)
    return LeaseResult(done=done, lost=tuple(in_order(set(job_ids) - set(done))))
