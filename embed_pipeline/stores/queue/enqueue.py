"""Enqueue: lock the keys that exist, decide, write, all in one transaction."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime

from embed_pipeline.domain.admission import Change, admit, changed
from embed_pipeline.domain.job import EmbedJob, Enqueued, JobId, JobKey, JobRequest, JobStatus
from embed_pipeline.stores.queue.transaction import Transaction

Numbered = tuple[int, JobRequest]


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
    outcomes: dict[int, Enqueued] = {}
    touched: list[JobId] = []
    waiting: list[Numbered] = list(enumerate(requests))
    while waiting:
        distinct, later = _first_of_each_key(waiting)
        page = _Page(transaction, ids=ids, max_attempts=max_attempts)
        touched += page.admit(distinct)
        outcomes |= page.outcomes
        waiting = page.overtaken + later
    in_request_order = [outcomes[number] for number in range(len(requests))]
    if touched:
        new_jobs = sum(outcome.is_new_work for outcome in in_request_order)
        transaction.record("jobs.enqueued", job_ids=touched, new_jobs=new_jobs)
        transaction.count(jobs_enqueued=new_jobs)
    return in_request_order


def _first_of_each_key(waiting: Iterable[Numbered]) -> tuple[list[Numbered], list[Numbered]]:
    first: list[Numbered] = []
    later: list[Numbered] = []
    seen: set[JobKey] = set()
    for number, request in waiting:
        (later if request.key in seen else first).append((number, request))
        seen.add(request.key)
    return first, later


class _Page:
    """Requests of different keys."""

    def __init__(
        self, transaction: Transaction, *, ids: Sequence[JobId], max_attempts: int
    ) -> None:
        self._transaction = transaction
        self._ids = ids
        self._max_attempts = max_attempts
        self.outcomes: dict[int, Enqueued] = {}
        self.overtaken: list[Numbered] = []
        """Those whose key another transaction created meanwhile: to be admitted again."""

    def admit(self, distinct: Sequence[Numbered]) -> list[JobId]:
        """The ids of the jobs that were created or changed."""
        met = self._transaction.jobs.lock_by_keys([request.key for _, request in distinct])
        now = self._transaction.now
        new: dict[JobId, tuple[Numbered, EmbedJob]] = {}
        before: list[EmbedJob] = []
        after: list[EmbedJob] = []
        # In the order of keys: transactions that create some of the same wait in one order.
        for number, request in sorted(distinct, key=lambda numbered: numbered[1].key):
            job = met.get(request.key)
            self.outcomes[number], change = _admission(request, job)
            if change is Change.CREATE:
                created = self._new_job(number, request, now)
                new[created.id] = ((number, request), created)
            elif job is not None and change is not Change.NONE:
                before.append(job)
                after.append(changed(job, change, request, now=now))
        return [*self._insert(new), *self._save(before, after)]

    def _insert(self, new: dict[JobId, tuple[Numbered, EmbedJob]]) -> list[JobId]:
        if not new:
            return []
        created = self._transaction.jobs.insert([job for _, job in new.values()])
        if len(created) < len(new):
            self.overtaken = [numbered for id_, (numbered, _) in new.items() if id_ not in created]
        return [job_id for job_id in new if job_id in created]

    def _save(self, before: Sequence[EmbedJob], after: Sequence[EmbedJob]) -> list[JobId]:
        if after:
            self._transaction.jobs.save(before, after)
        return [job.id for job in after]

    def _new_job(self, number: int, request: JobRequest, now: datetime) -> EmbedJob:
        return EmbedJob(
            id=self._ids[number],
            entity_uid=request.entity_uid,
            model=request.model,
            version=request.version,
            status=JobStatus.PENDING,
            priority=request.priority,
            created_at=now,
            available_at=now,
            max_attempts=self._max_attempts,
            force=request.force,
        )


def _admission(request: JobRequest, job: EmbedJob | None) -> tuple[Enqueued, Change]:
    if job is not None and not job.id:
        return Enqueued.PARKED, Change.NONE  # another program's, which no statement can name
    return admit(request, job)
