"""The statements on jobs, as the queue's engine asks for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from embed_pipeline.domain.admission import KnownJob
from embed_pipeline.domain.isolation import Head, Tier
from embed_pipeline.domain.job import (
    ENTITY_GONE,
    EmbedJob,
    EntityUid,
    FailureRecord,
    JobId,
    JobKey,
    JobRequest,
    JobStatus,
    QueueStatus,
)
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.transition import JobChanges
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import (
    STATUSES,
    Document,
    failure_fields,
    plain_fields,
    time_or_none,
    to_ms,
)
from embed_pipeline.stores.queue.job_table import JobTable, LeaseView
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue import query_sql as queries
from embed_pipeline.stores.sqlite.queue import rows


class Statements(Protocol):
    """A running transaction, as far as these statements are concerned."""

    connection: sqlite3.Connection

    @property
    def now(self) -> datetime: ...

    def all(self, statement: str, **parameters: object) -> list[sqlite3.Row]: ...

    def states(self, names: Sequence[str] | None = None) -> dict[str, Document]: ...


class SqliteJobs(JobTable):
    """Whoever writes is alone with the file, so nothing needs a lock of its own."""

    def __init__(self, transaction: Statements) -> None:
        self._transaction = transaction
        self._all = transaction.all
        self._now = to_ms(transaction.now)

    def get(self, job_id: JobId) -> EmbedJob | None:
        found = self._jobs(queries.GET_JOB, id=job_id)
        return found[0] if found else None

    def next_due(self, *, model: str) -> datetime | None:
        return time_or_none(self._all(sql.NEXT_DUE, model=model)[0]["due"])

    def has_stale(self) -> bool:
        return bool(self.lock_stale(limit=1))

    def live_owners(self) -> frozenset[str]:
        return frozenset(row["name"] for row in self._all(queries.LIVE_OWNERS, now=self._now))

    def count_by_status(self) -> QueueStatus:
        (row,) = self._all(queries.COUNT_BY_STATUS)
        return QueueStatus(
            pending=row["pending"],
            processing=row["processing"],
            completed=row["ended"] - row["failed"],
            failed=row["failed"],
        )

    def failed(self, *, category: ErrorCategory | None, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.LATEST_FAILED, category=category, limit=limit)

    def ended(
        self, *, status: JobStatus | None, after: tuple[int, str], limit: int
    ) -> list[EmbedJob]:
        statement = queries.FAILED_JOBS if status is JobStatus.FAILED else queries.ENDED_JOBS
        ended_at, job_id = after
        return self._jobs(statement, ended_at=ended_at, id=job_id, status=status, limit=limit)

    def parked(self, *, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.PARKED_JOBS, but=ENTITY_GONE, limit=limit)

    def count_parked(self) -> int:
        return int(self._all(queries.COUNT_PARKED, but=ENTITY_GONE)[0]["parked"])

    def walk(self, *, after: JobId, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.WALK_JOBS, after=after, limit=limit)

    def count_ahead(self, job: EmbedJob, *, limit: int) -> int:
        (row,) = self._all(
            queries.COUNT_AHEAD,
            id=job.id,
            model=job.model,
            rank=-job.priority,
            available_at=to_ms(job.available_at),
            limit=limit,
        )
        return int(row["ahead"])

    def of_entity(self, uid: EntityUid, *, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.JOBS_OF_ENTITY, entity_uid=uid, limit=limit)

    def lock_by_keys(self, keys: Sequence[JobKey]) -> Mapping[JobKey, KnownJob]:
        found = self._all(sql.FIND_BY_KEYS, keys=rows.as_list(keys))
        return {(row[0], row[1], row[2]): rows.known_job_of(row) for row in found}

    def insert(
        self, requests: Mapping[JobId, JobRequest], *, max_attempts: int
    ) -> Collection[JobId]:
        now = self._now
        self._transaction.connection.executemany(
            sql.INSERT_JOB,
            (
                (job_id, *request.key, request.priority, now, now, max_attempts, request.force)
                for job_id, request in requests.items()
            ),
        )
        return requests.keys()

    def save(self, changes: Mapping[JobId, JobChanges]) -> None:
        """One statement for all jobs whose changes are of the same fields."""
        by_fields: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
        for job_id, fields in changes.items():
            values = plain_fields(fields)
            by_fields.setdefault(tuple(values), []).append((*values.values(), job_id))
        for names, parameters in by_fields.items():
            self._transaction.connection.executemany(sql.save_jobs(names), parameters)

    def view_for_lease(
        self, *, owner: str, token: str, model: str, documents: Sequence[str]
    ) -> LeaseView:
        heads = self._all(sql.DUE_HEADS, model=model, now=self._now)
        return LeaseView(
            documents=self._transaction.states(documents),
            held=self._jobs(sql.FORMERLY_LEASED, token=token, owner=owner),
            heads=[Head(rank=row["rank"], tier=row["tier"], due=row["due"]) for row in heads],
        )

    def take(
        self, lease: Lease, *, model: str, tier: Tier, ranks: Sequence[int], limit: int
    ) -> list[EmbedJob]:
        until = to_ms(self._transaction.now + lease.duration)
        taken: list[EmbedJob] = []
        for rank in ranks:
            if len(taken) == limit:
                break
            taken += self._jobs(
                sql.LEASE_JOBS,
                owner=lease.owner,
                token=lease.token,
                until=until,
                now=self._now,
                model=model,
                rank=rank,
                tier=tier,
                limit=limit - len(taken),
            )
        return taken

    def extend(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        until = to_ms(self._transaction.now + lease.duration)
        return self._held_ids(sql.EXTEND_JOBS, lease, job_ids, until=until, now=self._now)

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held_ids(sql.RELEASE_JOBS, lease, job_ids)

    def defer(
        self,
        lease: Lease,
        job_ids: Sequence[JobId],
        *,
        error: FailureRecord,
        strike: bool,
        delay: timedelta,
    ) -> list[JobId]:
        available_at = to_ms(self._transaction.now + delay)
        fields = failure_fields(error)
        return self._held_ids(
            sql.DEFER_JOBS, lease, job_ids, strike=strike, available_at=available_at, **fields
        )

    def complete(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held_ids(sql.COMPLETE_JOBS, lease, job_ids, now=self._now)

    def complete_and_repeat(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held_ids(sql.COMPLETE_AND_REPEAT_JOBS, lease, job_ids, now=self._now)

    def completed_before(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._ids(sql.FORMERLY_DONE, job_ids=rows.as_list(job_ids), token=lease.token)

    def lock_held(self, lease: Lease, job_ids: Sequence[JobId]) -> list[EmbedJob]:
        ids = rows.as_list(job_ids)
        return self._jobs(sql.HELD_JOBS, job_ids=ids, owner=lease.owner, token=lease.token)

    def lock_stale(self, *, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.STALE_JOBS, now=self._now, limit=limit)

    def lock_owned(self, owner: str, *, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.JOBS_OF_OWNER, owner=owner, limit=limit)

    def retry_failed(self, *, category: ErrorCategory | None, limit: int) -> list[JobId]:
        return self._ids(sql.RETRY_FAILED, category=category, limit=limit, now=self._now)

    def cancel(self, *, entity_uid: EntityUid | None, limit: int) -> list[JobId]:
        statement = sql.CANCEL_JOBS if entity_uid is None else sql.CANCEL_JOBS_OF_ENTITY
        return self._ids(statement, entity_uid=entity_uid, limit=limit)

    def delete_ended(self, *, before: datetime, limit: int) -> list[JobStatus]:
        found = self._all(sql.DELETE_ENDED, cutoff=to_ms(before), limit=limit)
        return [STATUSES[row["status"]] for row in found]

    def delete_events(self, *, before: datetime, limit: int) -> int:
        return len(self._all(sql.DELETE_EVENTS, cutoff=to_ms(before), limit=limit))

    def _jobs(self, statement: str, **parameters: object) -> list[EmbedJob]:
        return rows.jobs_of(self._all(statement, **parameters))

    def _ids(self, statement: str, **parameters: object) -> list[JobId]:
        return [JobId(row["id"]) for row in self._all(statement, **parameters)]

    def _held_ids(
        self, statement: str, lease: Lease, job_ids: Sequence[JobId], **parameters: object
    ) -> list[JobId]:
        return self._ids(
            statement,
            job_ids=rows.as_list(job_ids),
            owner=lease.owner,
            token=lease.token,
            **parameters,
        )
