"""Looking back over the jobs in the queue's database."""

from __future__ import annotations

from datetime import datetime

from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, EntityUid, JobId, JobStatus
from embed_pipeline.ports.job_history import PAGE, JobHistory
from embed_pipeline.stores.encoding import page_start, to_ms
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase
from embed_pipeline.stores.neo4j.queue.cypher import history as cypher


class Neo4jJobHistory(JobHistory):
    def __init__(self, queue: QueueDatabase) -> None:
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
        statuses = [status] if status else ["completed", "failed"]
        return self._jobs(
            cypher.ENDED_JOBS, statuses=statuses, ended_at=ended_at, id=job_id, limit=limit
        )

    def parked(self, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(cypher.PARKED_JOBS, but=ENTITY_GONE, limit=limit)

    def count_parked(self) -> int:
        found = self._queue.read(lambda look: look.one(cypher.COUNT_PARKED, but=ENTITY_GONE))
        return int(found["parked"])

    def walk(self, *, after: JobId | None = None, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(cypher.WALK_JOBS, after=after or "", limit=limit)

    def ahead_of(self, job: EmbedJob, *, limit: int = PAGE) -> int:
        found = self._queue.read(
            lambda look: look.one(
                cypher.COUNT_AHEAD,
                id=job.id,
                model=job.model,
                rank=-job.priority,
                available_at=to_ms(job.available_at),
                limit=limit,
            )
        )
        return int(found["ahead"])

    def of_entity(self, uid: EntityUid, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(cypher.JOBS_OF_ENTITY, entity_uid=uid, limit=limit)

    def _jobs(self, statement: str, **parameters: object) -> tuple[EmbedJob, ...]:
        found = self._queue.read(lambda look: look.all(statement, **parameters))
        return tuple(rows.job_of(row["job"]) for row in found)
