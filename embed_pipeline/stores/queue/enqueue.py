"""Enqueue: lock the keys that exist, decide, write, all in one transaction."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from embed_pipeline.domain.job import Enqueued, JobId, JobKey, JobRequest
from embed_pipeline.domain.transition import Change, JobChanges, KnownJob, admit, changes_of
from embed_pipeline.stores.queue.transaction import Transaction


def new_ids(count: int) -> list[JobId]:
    """Ids sort by the time of their call and by their place in it.

    So jobs that are due in the same millisecond keep their order, and indexes grow at their end.
    """
    call = f"{time.time_ns():016x}{uuid.uuid4().hex[:8]}"
    return [JobId(f"{call}{number:08x}") for number in range(count)]


def enqueue(
    transaction: Transaction,
    requests: Sequence[JobRequest],
    *,
    ids: Sequence[JobId],
    max_attempts: int,
) -> list[Enqueued]:
    """An outcome per request; a key that is named twice is admitted twice, one after the other.

    `ids` are for jobs that turn out to be new: made outside, so that every run has the same.
    """
    outcomes: dict[JobId, Enqueued] = {}
    touched: list[JobId] = []
    waiting = dict(zip(ids, requests, strict=True))
    while waiting:
        distinct = _first_of_each_key(waiting)
        later = {id_: waiting[id_] for id_ in waiting if id_ not in distinct}
        page = _Page(transaction, max_attempts=max_attempts)
        touched += page.admit(distinct)
        outcomes |= page.outcomes
        waiting = page.overtaken | later
    if touched:
        new_jobs = sum(outcome.is_new_work for outcome in outcomes.values())
        transaction.record("jobs.enqueued", job_ids=touched, new_jobs=new_jobs)
        transaction.count(jobs_enqueued=new_jobs)
    return [outcomes[id_] for id_ in ids]


def _first_of_each_key(waiting: dict[JobId, JobRequest]) -> dict[JobId, JobRequest]:
    first: dict[JobKey, JobId] = {}
    for id_, request in waiting.items():
        first.setdefault(request.key, id_)
    return {id_: waiting[id_] for id_ in first.values()}


class _Page:
    """Requests of different keys, by the id that a new job of theirs would get."""

    def __init__(self, transaction: Transaction, *, max_attempts: int) -> None:
        self._transaction = transaction
        self._max_attempts = max_attempts
        self.outcomes: dict[JobId, Enqueued] = {}
        self.overtaken: dict[JobId, JobRequest] = {}
        """Those whose key another transaction created meanwhile: to be admitted again."""

    def admit(self, distinct: dict[JobId, JobRequest]) -> list[JobId]:
        """The ids of the jobs that were created or changed."""
        keys = [request.key for request in distinct.values()]
        met = self._transaction.jobs.lock_by_keys(keys)
        new: dict[JobId, JobRequest] = {}
        changes: dict[JobId, JobChanges] = {}
        for key, (id_, request) in zip(keys, distinct.items(), strict=True):
            job = met.get(key)
            self.outcomes[id_], change = _admission(request, job)
            if change is Change.CREATE:
                new[id_] = request
            elif job is not None and change is not Change.NONE:
                changes[job.id] = changes_of(job, change, request, now=self._transaction.now)
        if changes:
            self._transaction.jobs.save(changes)
        return [*self._insert(new), *changes]

    def _insert(self, new: dict[JobId, JobRequest]) -> list[JobId]:
        if not new:
            return []
        created = self._transaction.jobs.insert(new, max_attempts=self._max_attempts)
        self.overtaken = {id_: request for id_, request in new.items() if id_ not in created}
        return [id_ for id_ in new if id_ in created]


def _admission(request: JobRequest, job: KnownJob | None) -> tuple[Enqueued, Change]:
    if job is not None and not job.id:
        return Enqueued.PARKED, Change.NONE  # another program's, which no statement can name
    return admit(request, job)
