"""Enqueue on SQLite: look the keys up, decide, write, all in one transaction."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable, Sequence

from embed_pipeline.domain.admission import Change, admit_again, admit_new
from embed_pipeline.domain.job import Enqueued, JobId, JobRequest, JobStatus
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue import rows
from embed_pipeline.stores.sqlite.queue.backend import QueueTransaction

_STATEMENTS = {
    Change.CREATE: sql.INSERT_JOB,
    Change.REVIVE: sql.REVIVE_JOB,
    Change.EXPEDITE: sql.EXPEDITE_JOB,
    Change.REPEAT: sql.REPEAT_JOB,
}

Numbered = tuple[int, JobRequest]


def admit(
    transaction: QueueTransaction, requests: Sequence[JobRequest], *, max_attempts: int
) -> list[Enqueued]:
    """An outcome per request; a key named twice is admitted twice, one after the other."""
    outcomes: dict[int, Enqueued] = {}
    changed: list[JobId] = []
    waiting: list[Numbered] = list(enumerate(requests))
    while waiting:
        turn, waiting = _first_of_each_key(waiting)
        changed += _admit_distinct(transaction, turn, outcomes, max_attempts)
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
    max_attempts: int,
) -> list[JobId]:
    found = _find(transaction, [request for _, request in turn])
    changes: dict[Change, list[dict[str, object]]] = {change: [] for change in _STATEMENTS}
    changed: list[JobId] = []
    for number, request in turn:
        row = found.get(request.key)
        outcomes[number], change = _judge(request, row)
        if change is Change.NONE:
            continue
        job_id = JobId(row["id"]) if row else JobId(uuid.uuid4().hex)
        changed.append(job_id)
        changes[change].append(
            {
                "seq": row["seq"] if row else None,
                "id": job_id,
                "entity_uid": request.entity_uid,
                "model": request.model,
                "version": request.version,
                "priority": request.priority,
                "force": request.force,
                "max_attempts": max_attempts,
                "now": transaction.now_ms,
            }
        )
    for change, columns in changes.items():
        transaction.run_each(_STATEMENTS[change], columns)
    return changed


def _find(
    transaction: QueueTransaction, requests: Sequence[JobRequest]
) -> dict[tuple[str, str, str], sqlite3.Row]:
    keys = rows.as_list(request.key for request in requests)
    return {
        (row["entity_uid"], row["model"], row["version"]): row
        for row in transaction.all(sql.FIND_BY_KEYS, keys=keys)
    }


def _judge(request: JobRequest, row: sqlite3.Row | None) -> tuple[Enqueued, Change]:
    if row is None:
        return admit_new(request)
    return admit_again(request, JobStatus(row["status"]), row["fail_code"])
