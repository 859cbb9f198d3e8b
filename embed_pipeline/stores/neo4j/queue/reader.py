"""The statements that only read jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from embed_pipeline.domain.health import MOST_SILENT
from embed_pipeline.domain.job import (
    ENTITY_GONE,
    EmbedJob,
    EntityUid,
    JobId,
    JobStatus,
    Live,
    QueueStatus,
)
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import time_or_none, to_ms
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.cypher import queries as cypher
from embed_pipeline.stores.neo4j.queue.session import Session
from embed_pipeline.stores.queue.job_table import JobReader


class Neo4jJobReader(JobReader):
    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, job_id: JobId) -> EmbedJob | None:
        found = self._jobs(cypher.GET_JOB, id=job_id)
        return found[0] if found else None

    def next_due(self, *, model: str) -> datetime | None:
        return time_or_none(self._session.one(cypher.NEXT_DUE, model=model)["due"])

    def has_stale(self) -> bool:
        return bool(self._session.one(cypher.HAS_STALE)["found"]) or bool(self._malformed(limit=1))

    def _malformed(self, *, limit: int) -> list[str]:
        """Where jobs lie that another program gave a time in another form."""
        models = list(self.pending_models())
        found = self._session.one(cypher.MALFORMED_JOBS, models=models, page=limit)
        return list(found["places"])

    def silent(self, *, beaten_before: datetime, lock_until: datetime) -> list[EmbedJob]:
        bounds = {"beaten_before": to_ms(beaten_before), "lock_until": to_ms(lock_until)}
        return self._jobs(cypher.SILENT_JOBS, **bounds, limit=MOST_SILENT)

    def live_owners(self) -> frozenset[str]:
        return frozenset(lease["owner"] for lease in self._leases() if lease["alive"])

    def _leases(self) -> Iterator[Row]:
        """From lease to lease along the index, instead of reading all their jobs."""
        after = ""
        while found := self._session.all(cypher.NEXT_LEASE, after=after):
            yield found[0]
            after = found[0]["token"]

    def pending_models(self) -> tuple[str, ...]:
        models: list[str] = [""]
        while found := self._session.all(cypher.NEXT_MODEL, after=models[-1]):
            models.append(found[0]["model"])
        return tuple(models[1:])

    def count_by_status(self) -> QueueStatus:
        found = self._session.one(cypher.COUNT_BY_STATUS)
        counts = dict(found["counts"])
        return QueueStatus(**counts, other=max(found["total"] - sum(counts.values()), 0))

    def count_live(self, *, model: str, limit: int) -> Live:
        found = self._session.one(cypher.COUNT_LIVE, model=model, limit=limit)
        return Live(pending=min(found["pending"], limit), processing=found["processing"])

    def failed(self, *, category: ErrorCategory | None, limit: int) -> list[EmbedJob]:
        return self._jobs(cypher.LATEST_FAILED, category=category, limit=limit)

    def ended(
        self, *, status: JobStatus | None, after: tuple[int, str], limit: int
    ) -> list[EmbedJob]:
        statuses = [status] if status else ["completed", "failed"]
        ended_at, job_id = after
        return self._jobs(
            cypher.ENDED_JOBS, statuses=statuses, ended_at=ended_at, id=job_id, limit=limit
        )

    def parked(self, *, limit: int) -> list[EmbedJob]:
        return self._jobs(cypher.PARKED_JOBS, but=ENTITY_GONE, limit=limit)

    def count_parked(self, *, limit: int) -> int:
        found = self._session.one(cypher.COUNT_PARKED, but=ENTITY_GONE, limit=limit)
        return int(found["parked"])

    def walk(self, *, after: JobId, limit: int) -> list[EmbedJob]:
        return self._jobs(cypher.WALK_JOBS, after=after, limit=limit)

    def count_ahead(self, job: EmbedJob, *, limit: int) -> int:
        found = self._session.one(
            cypher.COUNT_AHEAD,
            id=job.id,
            model=job.model,
            rank=-job.priority,
            available_at=to_ms(job.available_at),
            limit=limit,
        )
        return int(found["ahead"])

    def of_entity(self, uid: EntityUid, *, limit: int) -> list[EmbedJob]:
        return self._jobs(cypher.JOBS_OF_ENTITY, entity_uid=uid, limit=limit)

    def _jobs(self, statement: str, **parameters: object) -> list[EmbedJob]:
        return [rows.job_of(row["job"]) for row in self._session.all(statement, **parameters)]
