"""What a holder does with leased jobs: extend, release, defer, complete, fail.

Each verb proves the lease by its owner and token. Jobs that are no longer the holder's are
returned as lost: that is normal, not an error.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from embed_pipeline.domain.job import ENTITY_GONE, FailureRecord, JobId, JobStatus, in_order
from embed_pipeline.domain.lease import FailReport, Lease, LeaseResult
from embed_pipeline.domain.transition import RetryPolicy, after_failure
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.queue import control
from embed_pipeline.stores.queue.transaction import Transaction
from embed_pipeline.telemetry.latency import LatencyKind, as_counters


def extend(transaction: Transaction, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
    return _result(transaction.jobs.extend(lease, in_order(job_ids)), job_ids)


def release(transaction: Transaction, lease: Lease, job_ids: Sequence[JobId]) -> int:
    done = in_order(transaction.jobs.release(lease, in_order(job_ids)))
    if done:
        transaction.record("jobs.released", owner=lease.owner, job_ids=done)
        transaction.count(jobs_released=len(done))
    return len(done)


def defer(
    transaction: Transaction,
    lease: Lease,
    job_ids: Sequence[JobId],
    *,
    error: FailureRecord,
    strike: bool,
    delay: timedelta,
) -> LeaseResult:
    done = in_order(
        transaction.jobs.defer(lease, in_order(job_ids), error=error, strike=strike, delay=delay)
    )
    if done:
        transaction.record(
            "jobs.deferred", owner=lease.owner, reason=error.message, job_ids=done, strike=strike
        )
        transaction.count(jobs_deferred=len(done))
    return _result(done, job_ids)


def complete(
    transaction: Transaction, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None
) -> LeaseResult:
    done = transaction.jobs.complete(lease, in_order(job_ids))
    if rest := _others(job_ids, done):
        done = in_order([*done, *transaction.jobs.complete_and_repeat(lease, rest)])
    if done:
        transaction.record("jobs.completed", owner=lease.owner, reason=reason, job_ids=done)
        transaction.count(jobs_completed=len(done))
        if reason is None:  # otherwise no vector was written
            _time(transaction, lease, done)
        control.note_success(transaction, count=len(done))
    if rest := _others(job_ids, done):
        # An earlier call whose acknowledgement was lost has completed these already.
        done = [*done, *transaction.jobs.completed_before(lease, rest)]
    return _result(done, job_ids)


def fail(
    transaction: Transaction,
    lease: Lease,
    failures: Mapping[JobId, FailureRecord],
    *,
    policy: RetryPolicy,
    is_counted: bool,
) -> FailReport:
    held = transaction.jobs.lock_held(lease, in_order(failures))
    changes = {
        job.id: after_failure(
            job, failures[job.id], policy=policy, now=transaction.now, chance=random.random()
        )
        for job in held
    }
    failed = in_order(id_ for id_, c in changes.items() if c["status"] is JobStatus.FAILED)
    retried = _others(changes, failed)
    if changes:
        transaction.jobs.save(changes)
        transaction.record("jobs.failed", owner=lease.owner, job_ids=failed, retried=retried)
        transaction.count(jobs_retried=len(retried), jobs_failed=len(failed))
    if not is_counted:
        _note(transaction, [failures[id_] for id_ in changes])
    lost = _others(failures, [*retried, *failed])
    return FailReport(retried=tuple(retried), failed=tuple(failed), lost=tuple(lost))


def refuse_critical(failures: Mapping[JobId, FailureRecord]) -> None:
    if any(failure.category is ErrorCategory.CRITICAL for failure in failures.values()):
        raise ValueError("a CRITICAL error is no job's attempt: defer its jobs and halt")


def _note(transaction: Transaction, failures: Iterable[FailureRecord]) -> None:
    """A deleted entity says nothing about the health of the pipeline."""
    counted = [failure for failure in failures if failure.fail_code != ENTITY_GONE]
    if counted:
        control.note_failures(transaction, counted)


def _time(transaction: Transaction, lease: Lease, done: Collection[JobId]) -> None:
    """Count how long these jobs took, by the database's clock."""
    now, ended = transaction.now, set(done)
    durations: dict[str, list[float]] = {}
    for job in lease.jobs:
        if job.id in ended:
            waited = (now - job.waits_since).total_seconds()
            durations.setdefault(job.model, []).append(waited)
    for model, seconds in durations.items():
        transaction.count(**as_counters(LatencyKind.JOB, model, seconds))


def _others(job_ids: Iterable[JobId], done: Collection[JobId]) -> list[JobId]:
    return in_order(set(job_ids) - set(done))


def _result(done: Iterable[JobId], job_ids: Sequence[JobId]) -> LeaseResult:
    ended = in_order(done)
    return LeaseResult(done=tuple(ended), lost=tuple(_others(job_ids, ended)))
