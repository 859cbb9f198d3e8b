"""Failing on SQLite: a charged attempt, then another one later or the end."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from embed_pipeline.domain.admission import outlives_failure
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, FailureRecord, JobId, in_order
from embed_pipeline.domain.lease import FailReport, Lease
from embed_pipeline.domain.retry import RetryPolicy, Verdict, verdict_for
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import failure_fields
from embed_pipeline.stores.sqlite.queue import health, rows
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue.backend import QueueTransaction


def fail(
    transaction: QueueTransaction,
    lease: Lease,
    failures: Mapping[JobId, FailureRecord],
    *,
    policy: RetryPolicy,
    is_counted: bool,
) -> FailReport:
    refuse_critical(failures)
    held = transaction.all(
        sql.HELD_JOBS,
        job_ids=rows.as_list(in_order(failures)),
        owner=lease.owner,
        token=lease.token,
    )
    retried: list[JobId] = []
    failed: list[JobId] = []
    for row in held:
        job = rows.job_of(row)
        goes_on = _settle(transaction, row["seq"], job, failures[job.id], policy)
        (retried if goes_on else failed).append(job.id)
    _account(transaction, lease, retried, failed)
    if not is_counted:
        _note(transaction, [failures[job_id] for job_id in (*retried, *failed)])
    lost = tuple(in_order(set(failures) - set(retried) - set(failed)))
    return FailReport(retried=tuple(retried), failed=tuple(failed), lost=lost)


def refuse_critical(failures: Mapping[JobId, FailureRecord]) -> None:
    if any(failure.category is ErrorCategory.CRITICAL for failure in failures.values()):
        raise ValueError("a CRITICAL error is no job's attempt: defer its jobs and halt")


def _settle(
    transaction: QueueTransaction,
    seq: int,
    job: EmbedJob,
    failure: FailureRecord,
    policy: RetryPolicy,
) -> bool:
    """Whether the job goes on."""
    columns = failure_fields(failure)
    if verdict_for(job, failure.category) is Verdict.RETRY:
        backoff = policy.backoff(job.attempts + 1, chance=random.random())
        transaction.run(
            sql.RETRY_LATER, seq=seq, available_at=transaction.in_ms(backoff), **columns
        )
        return True
    if outlives_failure(job.again, failure.fail_code):
        transaction.run(sql.START_AFRESH, seq=seq, now=transaction.now_ms)
        return True
    transaction.run(
        sql.FAIL_JOB,
        seq=seq,
        now=transaction.now_ms,
        charge=1,
        fail_code=failure.fail_code,
        fail_reason=failure.error_type,
        **columns,
    )
    return False


def _account(
    transaction: QueueTransaction,
    lease: Lease,
    retried: list[JobId],
    failed: list[JobId],
) -> None:
    if not (retried or failed):
        return
    transaction.record("jobs.failed", owner=lease.owner, job_ids=failed, retried=retried)
    transaction.count(jobs_retried=len(retried), jobs_failed=len(failed))


def _note(transaction: QueueTransaction, failures: Sequence[FailureRecord]) -> None:
    """A deleted entity says nothing about the health of the pipeline."""
    counted = [failure for failure in failures if failure.fail_code != ENTITY_GONE]
    if counted:
        health.note_failures(transaction, counted)
