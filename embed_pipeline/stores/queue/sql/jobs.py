"""The verbs on jobs in SQL, as the queue's engine asks for them.

A backend runs the statements, and has its own for what its database does better: `lock_by_keys`,
`insert`, `_save` and `view_for_lease`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from embed_pipeline.domain.health import MOST_SILENT
from embed_pipeline.domain.job import (
    ENTITY_GONE,
    EmbedJob,
    EntityUid,
    FailureRecord,
    JobId,
    JobStatus,
    Live,
    QueueStatus,
)
from embed_pipeline.domain.lease import Lease, Tier
from embed_pipeline.domain.transition import JobChanges
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import (
    MILLISECOND,
    STATUSES,
    failure_fields,
    plain_fields,
    read_moment,
    to_ms,
)
from embed_pipeline.stores.queue.job_table import JobTable
from embed_pipeline.stores.queue.sql import queries
from embed_pipeline.stores.queue.sql import statements as sql
from embed_pipeline.stores.queue.sql.reading import SqlReading, job_of


class SqlJobs(JobTable):
    def __init__(self, reading: SqlReading) -> None:
        self._reading = reading

    def get(self, job_id: JobId) -> EmbedJob | None:
        found = self._jobs(queries.GET_JOB, id=job_id)
        return found[0] if found else None

    def next_due(self, *, model: str) -> datetime | None:
        return read_moment(self._one(queries.NEXT_DUE, model=model)["due"])

    def has_stale(self) -> bool:
        return bool(self._one(queries.HAS_STALE)["found"])

    def silent(self, *, beaten_before: datetime, lock_until: datetime) -> list[EmbedJob]:
        bounds = {"beaten_before": to_ms(beaten_before), "lock_until": to_ms(lock_until)}
        return self._jobs(queries.SILENT_JOBS, **bounds, limit=MOST_SILENT)

    def live_owners(self) -> frozenset[str]:
        return frozenset(row["name"] for row in self._reading.all(queries.LIVE_OWNERS))

    def pending_models(self) -> tuple[str, ...]:
        return tuple(row["name"] for row in self._reading.all(queries.PENDING_MODELS))

    def count_by_status(self) -> QueueStatus:
        row = self._one(queries.COUNT_BY_STATUS)
        return QueueStatus(
            pending=row["pending"],
            processing=row["processing"],
            completed=row["ended"] - row["failed"],
            failed=row["failed"],
        )

    def count_live(self, *, model: str, limit: int) -> Live:
        row = self._one(queries.COUNT_LIVE, model=model, limit=limit)
        return Live(pending=row["pending"], processing=row["processing"])

    def failed(self, *, category: ErrorCategory | None, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.LATEST_FAILED, category=category and category.value, limit=limit)

    def ended(
        self, *, status: JobStatus | None, after: tuple[int, str], limit: int
    ) -> list[EmbedJob]:
        statement = queries.FAILED_JOBS if status is JobStatus.FAILED else queries.ENDED_JOBS
        ended_at, job_id = after
        return self._jobs(
            statement, ended_at=ended_at, id=job_id, status=status and status.value, limit=limit
        )

    def parked(self, *, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.PARKED_JOBS, entity_gone=ENTITY_GONE, limit=limit)

    def count_parked(self, *, limit: int) -> int:
        return int(self._one(queries.COUNT_PARKED, entity_gone=ENTITY_GONE, limit=limit)["found"])

    def walk(self, *, after: JobId, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.WALK_JOBS, after=after, limit=limit)

    def count_ahead(self, job: EmbedJob, *, limit: int) -> int:
        place = {"rank": -job.priority, "available_at": to_ms(job.available_at)}
        row = self._one(queries.COUNT_AHEAD, id=job.id, model=job.model, **place, limit=limit)
        return int(row["found"])

    def of_entity(self, uid: EntityUid, *, limit: int) -> list[EmbedJob]:
        return self._jobs(queries.JOBS_OF_ENTITY, entity_uid=uid, limit=limit)

    def save(self, changes: Mapping[JobId, JobChanges]) -> None:
        """One statement for all jobs whose changes are of the same fields."""
        by_fields: dict[tuple[str, ...], list[dict[str, object]]] = {}
        for job_id, changed in changes.items():
            fields = plain_fields(changed)
            by_fields.setdefault(tuple(fields), []).append({"id": job_id, **fields})
        for names, rows in by_fields.items():
            self._save(names, rows)

    @abstractmethod
    def _save(self, names: tuple[str, ...], rows: list[dict[str, object]]) -> None:
        """Set the fields of these names; each row has them, and the id of a job."""

    def take(
        self, lease: Lease, *, model: str, tier: Tier, ranks: Sequence[int], limit: int
    ) -> list[EmbedJob]:
        taken: list[EmbedJob] = []
        for rank in ranks:
            if len(taken) < limit:
                which = {"model": model, "tier": int(tier), "rank": rank}
                most = limit - len(taken)
                taken += self._jobs(sql.LEASE_JOBS, **_proof(lease), **which, limit=most)
        return taken

    def extend(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held(sql.EXTEND_JOBS, lease, job_ids)

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held(sql.RELEASE_JOBS, lease, job_ids)

    def defer(
        self,
        lease: Lease,
        job_ids: Sequence[JobId],
        *,
        error: FailureRecord,
        strike: bool,
        delay: timedelta,
    ) -> list[JobId]:
        effect = {"strike": int(strike), "delay": delay // MILLISECOND, **failure_fields(error)}
        return self._held(sql.DEFER_JOBS, lease, job_ids, **effect)

    def complete(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held(sql.COMPLETE_JOBS, lease, job_ids)

    def complete_and_repeat(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held(sql.COMPLETE_AND_REPEAT_JOBS, lease, job_ids)

    def completed_before(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._held(sql.COMPLETED_BEFORE, lease, job_ids)

    def lock_held(self, lease: Lease, job_ids: Sequence[JobId]) -> list[EmbedJob]:
        ids = self._reading.listed(job_ids)
        return self._jobs(sql.HELD_JOBS, **_proof(lease), job_ids=ids)

    def lock_stale(self, *, limit: int) -> list[EmbedJob]:
        self._reading.all(sql.REPAIR_JOBS, limit=limit)
        return self._jobs(sql.STALE_JOBS, limit=limit)

    def lock_owned(self, owner: str, *, limit: int) -> list[EmbedJob]:
        return self._jobs(sql.JOBS_OF_OWNER, owner=owner, limit=limit)

    def retry_failed(self, *, category: ErrorCategory | None, limit: int) -> list[JobId]:
        return self._ids(sql.RETRY_FAILED, category=category and category.value, limit=limit)

    def cancel(self, *, entity_uid: EntityUid | None, limit: int) -> list[JobId]:
        statement = sql.CANCEL_JOBS if entity_uid is None else sql.CANCEL_JOBS_OF_ENTITY
        return self._ids(statement, entity_uid=entity_uid, limit=limit)

    def delete_of_entity(self, entity_uid: EntityUid) -> list[JobId]:
        return self._ids(sql.DELETE_JOBS_OF_ENTITY, entity_uid=entity_uid)

    def delete_ended(self, *, before: datetime, limit: int) -> list[JobStatus]:
        found = self._reading.all(sql.DELETE_ENDED, before=to_ms(before), limit=limit)
        return [STATUSES[row["status"]] for row in found]

    def delete_events(self, *, before: datetime, limit: int) -> int:
        return len(self._reading.all(sql.DELETE_EVENTS, before=to_ms(before), limit=limit))

    def _one(self, statement: str, **parameters: object) -> Any:
        (row,) = self._reading.all(statement, **parameters)
        return row

    def _jobs(self, statement: str, **parameters: object) -> list[EmbedJob]:
        return [job_of(values) for values in self._reading.tuples(statement, **parameters)]

    def _ids(self, statement: str, **parameters: object) -> list[JobId]:
        return [JobId(row["id"]) for row in self._reading.all(statement, **parameters)]

    def _held(
        self, statement: str, lease: Lease, job_ids: Sequence[JobId], **parameters: object
    ) -> list[JobId]:
        ids = self._reading.listed(job_ids)
        return self._ids(statement, **_proof(lease), job_ids=ids, **parameters)


def _proof(lease: Lease) -> dict[str, object]:
    duration = lease.duration // MILLISECOND
    return {"owner": lease.owner, "token": lease.token, "duration": duration}
