"""Enqueue on Neo4j: lock the keys that exist, decide, write, all in one transaction.

A key that somebody else creates at the same moment is refused by the constraint; the caller then
runs the transaction again, and finds the job.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from embed_pipeline.domain.admission import Change, admit_again, admit_new
from embed_pipeline.domain.job import Enqueued, JobId, JobRequest
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.backend import QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import jobs as cypher

_STATEMENTS = {
    Change.CREATE: cypher.CREATE_JOBS,
    Change.REVIVE: cypher.REVIVE_JOBS,
    Change.EXPEDITE: cypher.EXPEDITE_JOBS,
    Change.REPEAT: cypher.REPEAT_JOBS,
}

Numbered = tuple[int, JobRequest]


def new_ids(count: int) -> list[JobId]:
    """Ids of one call sort in its order, so that jobs of one moment keep it."""
    call = uuid.uuid4().hex[:24]
    return [JobId(f"{call}{number:08x}") for number in range(count)]


def admit(
    transaction: QueueTransaction,
    requests: Sequence[JobRequest],
    *,
    ids: Sequence[JobId],
    max_attempts: int,
) -> list[Enqueued]:
    """An outcome per request; a key named twice is admitted twice, one after the other.

    `ids` are for jobs that turn out to be new: made outside, so that every try has the same.
    """
    outcomes: dict[int, Enqueued] = {}
    changed: list[JobId] = []
    waiting: list[Numbered] = list(enumerate(requests))
    while waiting:
        turn, waiting = _first_of_each_key(waiting)
        changed += _admit_distinct(transaction, turn, outcomes, ids, max_attempts)
    in_request_order = [outcomes[number] for number in range(len(requests))]
    if changed:
        new_jobs = sum(outcome.is_new_work for outcome in in_request_order)
        transaction.record("jobs.enqueued", job_ids=changed, new_jobs=new_jobs)
        transaction.count(jobs_enqueued=new_jobs)
    return in_request_order


def _first_of_each_key(waiting: Iterable[Numbered]) -> tuple[list[Numbered], list[Numbered]]:
    first: list[Numbered] = []
    later: list[Numbered] = []
    seen: set[tuple[str, str, str]] = set()
    for number, request in waiting:
        (later if request.key in seen else first).append((number, request))
        seen.add(request.key)
    return first, later


def _admit_distinct(
    transaction: QueueTransaction,
    turn: Sequence[Numbered],
    outcomes: dict[int, Enqueued],
    ids: Sequence[JobId],
    max_attempts: int,
) -> list[JobId]:
    found = _lock_existing(transaction, [request for _, request in turn])
    changes: dict[Change, list[dict[str, object]]] = {change: [] for change in _STATEMENTS}
    changed: list[JobId] = []
    # In the order of keys: everybody who creates some of the same waits in the same order.
    for number, request in sorted(turn, key=lambda numbered: numbered[1].key):
        job = found.get(request.key)
        outcomes[number], change = _judge(request, job)
        if change is Change.NONE:
            continue
        job_id = JobId(job["id"]) if job else ids[number]
        changed.append(job_id)
        changes[change].append(
            {
                "id": job_id,
                "entity_uid": request.entity_uid,
                "model": request.model,
                "version": request.version,
                "priority": request.priority,
                "force": request.force or None,
                "max_attempts": max_attempts,
            }
        )
    for change, wanted in changes.items():
        transaction.run_each(_STATEMENTS[change], wanted)
    return changed


def _lock_existing(
    transaction: QueueTransaction, requests: Sequence[JobRequest]
) -> dict[tuple[str, str, str], Row]:
    keys = [list(request.key) for request in requests]
    jobs = transaction.locked(cypher.LOCK_BY_KEYS, keys=keys)["jobs"]
    return {(job["entity_uid"], job["model"], job["version"]): job for job in jobs}


def _judge(request: JobRequest, job: Row | None) -> tuple[Enqueued, Change]:
    if job is None:
        return admit_new(request)
    if not isinstance(job["id"], str):
        return Enqueued.PARKED, Change.NONE  # another program's, which no statement can name
    return admit_again(request, rows.status_of(job["status"]), job["fail_code"])
