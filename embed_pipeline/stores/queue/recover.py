"""Recovery: jobs whose worker is gone are given back, or ended when they end every worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from embed_pipeline.domain.job import EmbedJob
from embed_pipeline.domain.recovery import (
    WORKER_KILLER,
    Fate,
    RecoveredJob,
    RecoveryPolicy,
    after_recovery,
    fate_of,
)
from embed_pipeline.stores.queue import control
from embed_pipeline.stores.queue.documents import HEALTH
from embed_pipeline.stores.queue.job_table import JobTable
from embed_pipeline.stores.queue.transaction import Transaction

LockStale = Callable[[JobTable, int], list[EmbedJob]]
"""Locks the jobs that are to be recovered, at most so many."""


def recover(
    transaction: Transaction,
    lock: LockStale,
    *,
    limit: int,
    policy: RecoveryPolicy,
    reason: str,
) -> list[RecoveredJob]:
    stale = lock(transaction.jobs, limit)
    if not stale:
        return []
    last_success_at = HEALTH.read(transaction).last_success_at
    now = transaction.now
    fates = [fate_of(job, policy=policy, last_success_at=last_success_at) for job in stale]
    decided = list(zip(stale, fates, strict=True))
    transaction.jobs.save(
        {job.id: after_recovery(job, fate, policy=policy, now=now) for job, fate in decided}
    )
    recovered = [_described(job, fate, now) for job, fate in decided]
    _account(transaction, recovered, reason=reason)
    return recovered


def _described(job: EmbedJob, fate: Fate, now: datetime) -> RecoveredJob:
    last_sign = job.last_heartbeat_at
    return RecoveredJob(
        id=job.id,
        entity_uid=job.entity_uid,
        previous_owner=job.lock_owner,
        recoveries=job.recoveries + 1,
        fate=fate,
        silent_for=now - last_sign if last_sign else None,
    )


def _account(transaction: Transaction, recovered: Sequence[RecoveredJob], *, reason: str) -> None:
    failed = [job.id for job in recovered if job.fate is Fate.FAILED]
    transaction.record(
        "jobs.recovered",
        reason=reason,
        job_ids=[job.id for job in recovered],
        previous_owners=sorted({job.previous_owner or "" for job in recovered}),
        failed=failed,
    )
    transaction.count(jobs_recovered=len(recovered) - len(failed), jobs_failed=len(failed))
    if failed:
        control.note_failures(transaction, [WORKER_KILLER] * len(failed))
    if any(job.fate is Fate.WAITING for job in recovered):
        control.note_crash_loop(transaction)
