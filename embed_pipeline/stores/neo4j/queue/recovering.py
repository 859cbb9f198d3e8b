"""Recovery on Neo4j: one transaction locks the stale jobs, looks again, and gives them back."""

from __future__ import annotations

from collections.abc import Sequence

from embed_pipeline.domain.job import LEASE_EXPIRED, LEASE_TIMEOUT, EmbedJob, FailureRecord, JobId
from embed_pipeline.domain.recovery import Fate, RecoveredJob, RecoveryPolicy, fate_of
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import failure_fields
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue import health, rows
from embed_pipeline.stores.neo4j.queue.adoption import adopt_these
from embed_pipeline.stores.neo4j.queue.backend import QueueReading, QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import leased as cypher_holding
from embed_pipeline.stores.neo4j.queue.cypher import recovery as cypher
from embed_pipeline.stores.neo4j.queue.shared_state import read_health

WORKER_KILLER = FailureRecord(
    category=ErrorCategory.PERMANENT,
    error_type="LeaseExpired",
    message="every worker that took this job ended without finishing it",
    fail_code=LEASE_TIMEOUT,
)

SAMPLE = 2_000
"""Jobs that one look goes through, for a missing end of lease or one of our other fields."""

_PLACE = "recovery"
"""The state that remembers where the last look stopped, in a queue longer than one look."""


def lock_stale(transaction: QueueTransaction, limit: int, *, max_attempts: int) -> list[Row]:
    after, seen = _look_at_jobs(transaction, max_attempts)
    _move_on(transaction, after, seen)
    locked = transaction.locked(cypher.LOCK_STALE_JOBS, unended=seen["unended"], limit=limit)
    return list(locked["jobs"])


def has_expired(look: QueueReading) -> bool:
    return bool(look.one(cypher.HAS_EXPIRED)["found"])


def has_unended(transaction: QueueTransaction, *, max_attempts: int) -> bool:
    """Where there is one the place stays, so that the recovery which follows looks there too."""
    after, seen = _look_at_jobs(transaction, max_attempts)
    if not seen["unended"]:
        _move_on(transaction, after, seen)
    return bool(seen["unended"])


def _look_at_jobs(transaction: QueueTransaction, max_attempts: int) -> tuple[str, Row]:
    place = transaction.state(_PLACE)
    after = place["after"] if place else ""
    seen = transaction.one(cypher.LOOK_AT_JOBS, after=after, sample=SAMPLE)
    if seen["foreign"]:
        adopt_these(transaction, seen["foreign"], max_attempts=max_attempts)
    return after, seen


def _move_on(transaction: QueueTransaction, after: str, seen: Row) -> None:
    """Round and round, so that every job has its turn; a short queue is seen as a whole."""
    following = seen["last"] if seen["looked"] == SAMPLE else ""
    if following != after:
        transaction.set_state(_PLACE, {"after": following})


def lock_owners(transaction: QueueTransaction, limit: int, *, owner: str) -> list[Row]:
    locked = transaction.locked(cypher.LOCK_JOBS_OF_OWNER, owner=owner, limit=limit)
    return list(locked["jobs"])


def recover(
    transaction: QueueTransaction, stale: Sequence[Row], *, policy: RecoveryPolicy, reason: str
) -> list[RecoveredJob]:
    """`stale` are locked by this transaction."""
    if not stale:
        return []
    last_success_at = read_health(transaction).last_success_at
    jobs = [rows.job_of(node) for node in stale]
    fates = [fate_of(job, policy=policy, last_success_at=last_success_at) for job in jobs]
    _give_back(transaction, list(zip(jobs, fates, strict=True)), policy)
    recovered = [_described(transaction, job, fate) for job, fate in zip(jobs, fates, strict=True)]
    _account(transaction, recovered, reason=reason)
    return recovered


def _give_back(
    transaction: QueueTransaction, judged: Sequence[tuple[EmbedJob, Fate]], policy: RecoveryPolicy
) -> None:
    returned: list[dict[str, object]] = []
    ended: list[dict[str, object]] = []
    for job, fate in judged:
        recoveries = job.recoveries + 1
        row: dict[str, object] = {"id": job.id, "recoveries": recoveries}
        if fate is Fate.FAILED:
            row |= {"charge": 0, "fail_code": LEASE_TIMEOUT, "fail_reason": LEASE_EXPIRED}
            ended.append(row | failure_fields(WORKER_KILLER))
        else:
            row["available_at"] = transaction.in_ms(policy.backoff(recoveries))
            returned.append(row)
    transaction.run_each(cypher.RECOVER_JOBS, returned)
    transaction.run_each(cypher.COUNT_RECOVERIES, ended)
    transaction.run_each(cypher_holding.FAIL_JOBS, ended)


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
    found = transaction.one(cypher.RETRY_FAILED, category=category, limit=limit)
    job_ids = tuple(JobId(job_id) for job_id in found["done"])
    if job_ids:
        transaction.record("jobs.retried", job_ids=job_ids)
    return job_ids
