"""Looking back: the jobs of a queue a page at a time, its events, and what it has counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from embed_pipeline.domain.job import EmbedJob, EntityUid, Event, JobId, JobStatus
from embed_pipeline.ports import job_history as ports
from embed_pipeline.ports import queue_control
from embed_pipeline.ports.job_history import PAGE
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.queue.job_table import JobReader
from embed_pipeline.stores.queue.transaction import QueueDatabase
from embed_pipeline.telemetry.latency import Histogram, histograms_of, is_latency

EVERY = 2**62
"""A limit for all databases that no queue reaches."""


class JobHistory(ports.JobHistory):
    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def ended(
        self,
        *,
        since: datetime | None = None,
        status: JobStatus | None = None,
        after: EmbedJob | None = None,
        limit: int = PAGE,
    ) -> tuple[EmbedJob, ...]:
        if after is not None and after.processed_at is None:
            return ()  # jobs whose end is no time are the last ones
        start = _page_start(after, since=since)
        return self._jobs(lambda jobs: jobs.ended(status=status, after=start, limit=limit))

    def parked(self, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(lambda jobs: jobs.parked(limit=limit))

    def count_parked(self, *, limit: int | None = None) -> int:
        most = EVERY if limit is None else limit
        return self._database.read(lambda reading: reading.jobs.count_parked(limit=most))

    def walk(self, *, after: JobId | None = None, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(lambda jobs: jobs.walk(after=after or JobId(""), limit=limit))

    def ahead_of(self, job: EmbedJob, *, limit: int = PAGE) -> int:
        return self._database.read(lambda reading: reading.jobs.count_ahead(job, limit=limit))

    def of_entity(self, uid: EntityUid, *, limit: int = PAGE) -> tuple[EmbedJob, ...]:
        return self._jobs(lambda jobs: jobs.of_entity(uid, limit=limit))

    def _jobs(self, find: Callable[[JobReader], Sequence[EmbedJob]]) -> tuple[EmbedJob, ...]:
        return tuple(self._database.read(lambda reading: find(reading.jobs)))


class Events(queue_control.Events):
    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def recent(self, *, limit: int = 100, kind: str | None = None) -> tuple[Event, ...]:
        found = self._database.read(lambda reading: reading.events(limit=limit, kind=kind))
        return tuple(found)


class Counters(queue_control.Counters):
    def __init__(self, database: QueueDatabase) -> None:
        self._database = database

    def add(self, amounts: Mapping[str, int]) -> None:
        if any(amounts.values()):
            self._database.write(lambda transaction: transaction.count(**amounts))

    def read(self) -> Mapping[str, int]:
        return {name: value for name, value in self._all().items() if not is_latency(name)}

    def latencies(self, *, model: str) -> Sequence[Histogram]:
        return histograms_of(self._all(), model=model)

    def _all(self) -> Mapping[str, int]:
        return self._database.read(lambda reading: reading.counters())


def _page_start(job: EmbedJob | None, *, since: datetime | None) -> tuple[int, str]:
    """Time and id where a page of ended jobs begins: behind the job, never before `since`."""
    # No id is empty, so the first page is behind nothing.
    first = (to_ms(since) if since else 0, "")
    if job is None or job.processed_at is None:
        return first
    return max(first, (to_ms(job.processed_at), job.id))
