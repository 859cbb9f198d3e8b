"""Looking back over the jobs in the queue's file."""

from __future__ import annotations

from datetime import datetime

from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, EntityUid, JobId, JobStatus
from embed_pipeline.ports.job_history import PAGE, JobHistory
from embed_pipeline.stores.encoding import page_start, to_ms
from embed_pipeline.stores.sqlite.queue import history_sql as sql
from embed_pipeline.stores.sqlite.queue import rows
from embed_pipeline.stores.sqlite.queue.backend import QueueFile


class SqliteJobHistory(JobHistory):
    def __init__(self, queue: QueueFile) -> None:
        self._queue = queue

    def ended(
        self,
        *,
        since: datetime | None = None,
        status: JobStatus | None = None,
        after: EmbedJob | None = None,
        limit: int = PAGE,
    ) -> tuple[EmbedJob, ...]:
        ended_at, job_id = page_start(after, since=since)
        statement = sql.FAILED_JOBS if status is JobStatus.FAILED else sql.ENDED_JOBS
        return self._jobs(statement, ended_at=ended_at, id=job_id, status=status, limit=limit)

    def parked(self, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(sql.PARKED_JOBS, but=ENTITY_GONE, limit=limit)

    def count_parked(self) -> int:
        with self._queue.reading() as look:
            return int(look.all(sql.COUNT_PARKED, but=ENTITY_GONE)[0]["parked"])

    def walk(self, *, after: JobId | None = None, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(sql.WALK_JOBS, after=after or "", limit=limit)

    def ahead_of(self, job: EmbedJob, *, limit: int = PAGE) -> int:
        with self._queue.reading() as look:
            found = look.all(
                sql.COUNT_AHEAD,
                id=job.id,
                model=job.model,
                rank=-job.priority,
                available_at=to_ms(job.available_at),
                limit=limit,
            )
        return int(found[0]["ahead"])

    def of_entity(self, uid: EntityUid, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(sql.JOBS_OF_ENTITY, entity_uid=uid, limit=limit)

    def _jobs(self, statement: str, **parameters: object) -> tuple[EmbedJob, ...]:
        with self._queue.reading() as look:
            return tuple(rows.job_of(row) for row in look.all(statement, **parameters))
