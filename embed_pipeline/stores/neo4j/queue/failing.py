"""Failing on Neo4j: a charged attempt, then another one later or the end."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from embed_pipeline.domain.admission import outlives_failure
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, FailureRecord, JobId
from embed_pipeline.domain.lease import FailReport, Lease
from embed_pipeline.domain.retry import RetryPolicy, Verdict, verdict_for
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import failure_fields
from embed_pipeline.stores.neo4j.queue import health, rows
from embed_pipeline.stores.neo4j.queue.backend import QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import leased as cypher
from embed_pipeline.stores.neo4j.queue.settling import held_by

Changes = dict[str, list[dict[str, object]]]
"""Rows by the statement that writes them."""


def fail(
    transaction: QueueTransaction,
    lease: Lease,
    failures: Mapping[JobId, FailureRecord],
    *,
    policy: RetryPolicy,
    is_counted: bool,
) -> FailReport:
    held = transaction.locked(cypher.LOCK_HELD_JOBS, **held_by(lease, list(failures)))["jobs"]
    changes: Changes = {cypher.RETRY_LATER: [], cypher.START_AFRESH: [], cypher.FAIL_JOBS: []}
    for node in held:
        job = rows.job_of(node)
        statement, row = _settled(transaction, job, failures[job.id], policy)
        changes[statement].append({"id": job.id, **row})
    for statement, wanted in changes.items():
        transaction.run_each(statement, wanted)
    failed = _ids(changes[cypher.FAIL_JOBS])
    retried = _ids([*changes[cypher.RETRY_LATER], *changes[cypher.START_AFRESH]])
    _account(transaction, lease, retried, failed)
    if not is_counted:
        _note(transaction, [failures[job_id] for job_id in (*retried, *failed)])
    lost = set(failures) - set(retried) - set(failed)
    return FailReport(retried=retried, failed=failed, lost=tuple(sorted(lost)))


def refuse_critical(failures: Mapping[JobId, FailureRecord]) -> None:
    if any(failure.category is ErrorCategory.CRITICAL for failure in failures.values()):
        raise ValueError("a CRITICAL error is no job's attempt: defer its jobs and halt")


def _settled(
    transaction: QueueTransaction, job: EmbedJob, failure: FailureRecord, policy: RetryPolicy
) -> tuple[str, dict[str, object]]:
    """What is to be written, and by which statement."""
    error = failure_fields(failure)
    if verdict_for(job, failure.category) is Verdict.RETRY:
        backoff = policy.backoff(job.attempts + 1, chance=random.random())
        return cypher.RETRY_LATER, {"available_at": transaction.in_ms(backoff), **error}
    if outlives_failure(job.again, failure.fail_code):
        return cypher.START_AFRESH, {}
    ended = {"charge": 1, "fail_code": failure.fail_code, "fail_reason": failure.error_type}
    return cypher.FAIL_JOBS, {**ended, **error}


def _ids(changes: Sequence[Mapping[str, object]]) -> tuple[JobId, ...]:
    return tuple(sorted(JobId(str(row["id"])) for row in changes))


def _account(
    transaction: QueueTransaction,
    lease: Lease,
    retried: Sequence[JobId],
    failed: Sequence[JobId],
) -> None:
    if not (retried or failed):
        return
    transaction.record("jobs.failed", owner=lease.owner, job_ids=failed, retried=list(retried))
    transaction.count(jobs_retried=len(retried), jobs_failed=len(failed))


def _note(transaction: QueueTransaction, failures: Sequence[FailureRecord]) -> None:
    """A deleted entity says nothing about the health of the pipeline."""
    counted = [failure for failure in failures if failure.fail_code != ENTITY_GONE]
    if counted:
        health.note_failures(transaction, counted)
