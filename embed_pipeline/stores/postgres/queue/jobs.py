"""The jobs of one transaction: each verb of the engine is one statement."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Protocol

from psycopg.rows import DictRow

from embed_pipeline.domain.isolation import Head, Tier
from embed_pipeline.domain.job import (
    ENTITY_GONE,
    Again,
    EmbedJob,
    EntityUid,
    FailureRecord,
    JobId,
    JobKey,
    JobStatus,
    QueueStatus,
)
from embed_pipeline.domain.lease import Lease
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import STATUSES, failure_fields, from_ms, time_or_none, to_ms
from embed_pipeline.stores.postgres.queue import sql
from embed_pipeline.stores.queue.job_table import JobTable, LeaseView

_TIMES = [field.name for field in fields(EmbedJob) if "datetime" in str(field.type)]
_MILLISECOND = timedelta(milliseconds=1)


def job_of(row: DictRow) -> EmbedJob:
    """The columns have the names of the fields."""
    for name in _TIMES:
        if (value := row[name]) is not None:
            row[name] = from_ms(value)
    row["status"] = STATUSES[row["status"]]
    row["again"] = Again(row["again"])
    if (category := row["error_category"]) is not None:
        row["error_category"] = ErrorCategory(category)
    return EmbedJob(**row)


def columns_of(job: EmbedJob) -> dict[str, object]:
    columns = {field.name: getattr(job, field.name) for field in fields(EmbedJob)}
    times = {name: to_ms(columns[name]) for name in _TIMES if columns[name] is not None}
    return columns | times


class Statements(Protocol):
    def all(self, statement: str, **parameters: object) -> list[DictRow]: ...

    def one(self, statement: str, **parameters: object) -> DictRow: ...


class PostgresJobs(JobTable):
    def __init__(self, session: Statements) -> None:
        self._session = session

    def get(self, job_id: JobId) -> EmbedJob | None:
        return next(iter(self._jobs(sql.GET_JOB, id=job_id)), None)

    def next_due(self, *, model: str) -> datetime | None:
        return time_or_none(self._session.one(sql.NEXT_DUE, model=model)["due"])

    def has_stale(self) -> bool:
        return bool(self._session.one(sql.HAS_STALE)["found"])

    def live_owners(self) -> frozenset[str]:
        return frozenset(row["name"] for row in self._session.all(sql.LIVE_OWNERS))

    def count_by_status(self) -> QueueStatus:
        counts = self._session.one(sql.COUNT_BY_STATUS)
        counts["completed"] = counts.pop("ended") - counts["failed"]
        return QueueStatus(**counts)

    def failed(self, *, category: ErrorCategory | None, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.FAILED_JOBS, category=category, limit=limit)

    def ended(
        self, *, status: JobStatus | None, after: tuple[int, str], limit: int
    ) -> list[EmbedJob]:
        statement = sql.ENDED_BADLY if status is JobStatus.FAILED else sql.ENDED_JOBS
        ended_at, job_id = after
        return self._jobs(statement, status=status, ended_at=ended_at, id=job_id, limit=limit)

    def parked(self, *, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.PARKED_JOBS, gone=ENTITY_GONE, limit=limit)

    def count_parked(self) -> int:
        return int(self._session.one(sql.COUNT_PARKED, gone=ENTITY_GONE)["found"])

    def walk(self, *, after: JobId, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.WALK_JOBS, after=after, limit=limit)

    def count_ahead(self, job: EmbedJob, *, limit: int) -> int:
        place = columns_of(job) | {"rank": -job.priority, "limit": limit}
        return int(self._session.one(sql.COUNT_AHEAD, **place)["found"])

    def of_entity(self, uid: EntityUid, *, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.JOBS_OF_ENTITY, uid=uid, limit=limit)

    def lock_by_keys(self, keys: Sequence[JobKey]) -> Mapping[JobKey, EmbedJob]:
        uids, models, versions = map(list, zip(*keys, strict=True))
        found = self._jobs(sql.LOCK_BY_KEYS, uids=uids, models=models, versions=versions)
        return {(job.entity_uid, job.model, job.version): job for job in found}

    def insert(self, jobs: Sequence[EmbedJob]) -> Collection[JobId]:
        return set(
            self._ids(
                sql.INSERT_JOBS,
                ids=[job.id for job in jobs],
                uids=[job.entity_uid for job in jobs],
                models=[job.model for job in jobs],
                versions=[job.version for job in jobs],
                priorities=[job.priority for job in jobs],
                forces=[job.force for job in jobs],
                at=to_ms(jobs[0].created_at),
                max_attempts=jobs[0].max_attempts,
            )
        )

    def save(self, before: Sequence[EmbedJob], after: Sequence[EmbedJob]) -> None:
        jobs = json.dumps([columns_of(job) for job in after])
        self._session.all(sql.SAVE_JOBS, jobs=jobs.replace("\\u0000", "\\ufffd"))

    def view_for_lease(
        self, *, owner: str, token: str, model: str, documents: Sequence[str]
    ) -> LeaseView:
        whose = {"owner": owner, "token": token}
        view = self._session.one(
            sql.VIEW_FOR_LEASE, **whose, model=model, documents=list(documents)
        )
        return LeaseView(
            documents={name: json.loads(value) for name, value in view["documents"].items()},
            held=self._jobs(sql.LEASED_BEFORE, **whose) if view["is_held"] else (),
            heads=[Head(*head) for head in view["heads"]],
        )

    def take(
        self, lease: Lease, *, model: str, tier: Tier, ranks: Sequence[int], limit: int
    ) -> list[EmbedJob]:
        return self._jobs(
            sql.TAKE_JOBS, **_of(lease), model=model, tier=tier, ranks=list(ranks), limit=limit
        )

    def extend(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._ids(sql.EXTEND_JOBS, **_of(lease, job_ids))

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._ids(sql.RELEASE_JOBS, **_of(lease, job_ids))

    def defer(
        self,
        lease: Lease,
        job_ids: Sequence[JobId],
        *,
        error: FailureRecord,
        strike: bool,
        delay: timedelta,
    ) -> list[JobId]:
        facts = {**failure_fields(error), "strike": strike, "delay": delay // _MILLISECOND}
        return self._ids(sql.DEFER_JOBS, **_of(lease, job_ids), **facts)

    def complete(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._ids(sql.COMPLETE_JOBS, **_of(lease, job_ids))

    def complete_and_repeat(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._ids(sql.COMPLETE_AND_REPEAT_JOBS, **_of(lease, job_ids))

    def completed_before(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._ids(sql.COMPLETED_BEFORE, **_of(lease, job_ids))

    def lock_held(self, lease: Lease, job_ids: Sequence[JobId]) -> list[EmbedJob]:
        return self._jobs(sql.LOCK_HELD, **_of(lease, job_ids))

    def lock_stale(self, *, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.LOCK_STALE, limit=limit)

    def lock_owned(self, owner: str, *, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.LOCK_OWNED, owner=owner, limit=limit)

    def retry_failed(self, *, category: ErrorCategory | None, limit: int) -> list[JobId]:
        return self._ids(sql.RETRY_FAILED, category=category, limit=limit)

    def cancel(self, *, entity_uid: EntityUid | None, limit: int) -> list[JobId]:
        statement = sql.CANCEL_JOBS if entity_uid is None else sql.CANCEL_JOBS_OF_ENTITY
        return self._ids(statement, uid=entity_uid, limit=limit)

    def delete_ended(self, *, before: datetime, limit: int) -> list[JobStatus]:
        found = self._session.all(sql.DELETE_ENDED, before=to_ms(before), limit=limit)
        return [STATUSES[row["status"]] for row in found]

    def delete_events(self, *, before: datetime, limit: int) -> int:
        return len(self._session.all(sql.DELETE_EVENTS, before=to_ms(before), limit=limit))

    def _jobs(self, statement: str, **parameters: object) -> list[EmbedJob]:
        return [job_of(row) for row in self._session.all(statement, **parameters)]

    def _ids(self, statement: str, **parameters: object) -> list[JobId]:
        return [JobId(row["id"]) for row in self._session.all(statement, **parameters)]


def _of(lease: Lease, job_ids: Sequence[JobId] = ()) -> dict[str, object]:
    return {
        "job_ids": list(job_ids),
        "owner": lease.owner,
        "token": lease.token,
        "duration": lease.duration // _MILLISECOND,
    }
