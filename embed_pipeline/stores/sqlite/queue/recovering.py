"""Recovery on SQLite: one transaction finds the stale jobs and gives them back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from embed_pipeline.domain.job import LEASE_EXPIRED, LEASE_TIMEOUT, EmbedJob, FailureRecord, JobId
from embed_pipeline.domain.recovery import Fate, RecoveredJob, RecoveryPolicy, fate_of
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import failure_fields
from embed_pipeline.stores.sqlite.queue import health, rows
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue.backend import QueueTransaction
from embed_pipeline.stores.sqlite.queue.shared_state import read_health

WORKER_KILLER = FailureRecord(
    category=ErrorCategory.PERMANENT,
    error_type="LeaseExpired",
    message="every worker that took this job ended without finishing it",
    fail_code=LEASE_TIMEOUT,
)


def recover(
    transaction: QueueTransaction,
    stale: Sequence[sqlite3.Row],
    *,
    policy: RecoveryPolicy,
    reason: str,
) -> list[RecoveredJob]:
    last_success_at = read_health(transaction).last_success_at
    recovered: list[RecoveredJob] = []
    for row in stale:
        job = rows.job_of(row)
        fate = fate_of(job, policy=policy, last_success_at=last_success_at)
        _give_back(transaction, row["seq"], job, fate, policy)
        recovered.append(_described(transaction, job, fate))
    _account(transaction, recovered, reason=reason)
    return recovered


def _give_back(
    transaction: QueueTransaction, seq: int, job: EmbedJob, fate: Fate, policy: RecoveryPolicy
) -> None:
    recoveries = job.recoveries + 1
    columns = {"seq": seq, "now": transaction.now_ms, "recoveries": recoveries}
    if fate is Fate.FAILED:
        transaction.run(sql.COUNT_RECOVERY, **columns)
        transaction.run(
            sql.FAIL_JOB,
            seq=seq,
            now=transaction.now_ms,
            charge=0,
            fail_code=LEASE_TIMEOUT,
            fail_reason=LEASE_EXPIRED,
            **failure_fields(WORKER_KILLER),
        )
    else:
        available_at = transaction.in_ms(policy.backoff(recoveries))
        transaction.run(sql.RECOVER_JOB, **columns, available_at=available_at)


def _described(transaction: QueueTransaction, job: EmbedJob, fate: Fate) -> RecoveredJob:
    last_sign = job.last_heartbeat_at
    return RecoveredJob(
        id=job.id,
        entity_uid=job.entity_uid,
        previous_owner=job.lock_owner,
        recoveries=job.recoveries + 1,
        fate=fate,
        silent_for=transaction.now - last_sign if last_sign else None,
    )


def _account(
    transaction: QueueTransaction, recovered: Sequence[RecoveredJob], *, reason: str
) -> None:
    if not recovered:
        return
    failed = [job for job in recovered if job.fate is Fate.FAILED]
    transaction.record(
        "jobs.recovered",
        reason=reason,
        job_ids=[job.id for job in recovered],
        previous_owners=sorted({job.previous_owner or "" for job in recovered}),
        failed=[job.id for job in failed],
    )
    transaction.count(jobs_recovered=len(recovered) - len(failed), jobs_failed=len(failed))
    if failed:
        health.note_failures(transaction, [WORKER_KILLER] * len(failed))
    if any(job.fate is Fate.WAITING for job in recovered):
        health.note_crash_loop(transaction)


def retry_failed(
    transaction: QueueTransaction, *, category: ErrorCategory | None, limit: int
) -> tuple[JobId, ...]:
    found = transaction.all(
        sql.RETRY_FAILED, category=category, limit=limit, now=transaction.now_ms
    )
    job_ids = tuple(JobId(row["id"]) for row in found)
    if job_ids:
        transaction.record("jobs.retried", job_ids=job_ids)
    return job_ids
