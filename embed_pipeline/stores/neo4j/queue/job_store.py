"""What is different on Neo4j: cleanup by APOC, and verbs that adopt jobs of other programs first.

A lease adopts by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

from embed_pipeline import telemetry
from embed_pipeline.domain.job import CleanupReport, EmbedJob, JobId, JobStatus
from embed_pipeline.domain.recovery import QueuePolicy, Recovery
from embed_pipeline.errors import ErrorCategory, StoreBusy
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.cypher import recovery as cypher
from embed_pipeline.stores.queue.history import JobHistory
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.maintenance import PAGE, record_cleanup
from embed_pipeline.stores.queue.transaction import QueueDatabase, Reading, Transaction

T = TypeVar("T")


class _AdoptingReads(QueueDatabase):
    """For lists of jobs: what another program has ended is not in their index before."""

    def __init__(self, queue: Neo4jQueue) -> None:
        self._queue = queue

    def read(self, work: Callable[[Reading], T]) -> T:
        self._queue.adopt_page()
        return self._queue.read(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self._queue.write(work)

    def close(self) -> None:
        self._queue.close()


class Neo4jJobStore(QueueJobStore):
    def __init__(self, queue: Neo4jQueue, *, policy: QueuePolicy | None = None) -> None:
        super().__init__(queue, policy=policy)
        self._queue = queue
        self._history = JobHistory(_AdoptingReads(queue))
        self._said_so = False

    def recover_stale(self, *, limit: int = 10_000) -> Recovery:
        """All jobs of another program are adopted before."""
        while self._queue.adopt_page():
            pass
        return super().recover_stale(limit=limit)

    def retry_failed(
        self, *, category: ErrorCategory | None = None, limit: int = 10_000
    ) -> tuple[JobId, ...]:
        self._queue.adopt_page()
        return super().retry_failed(category=category, limit=limit)

    def failed_jobs(
        self, *, category: ErrorCategory | None = None, limit: int = 100
    ) -> tuple[EmbedJob, ...]:
        self._queue.adopt_page()
        return super().failed_jobs(category=category, limit=limit)

    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        """By `apoc.periodic.iterate`: small transactions of the server's own.

        Raises StoreBusy when something could not be deleted; the rest is, and is recorded.
        """
        self._queue.adopt_page()
        if not self._has_apoc:
            return super().cleanup(older_than=older_than)
        cutoff = to_ms(self.now() - older_than)
        problems: set[str] = set()
        delete = partial(self._delete, cutoff=cutoff, problems=problems)
        report = CleanupReport(
            completed=delete(cypher.ENDED_JOBS, cypher.DELETE_JOB, status=JobStatus.COMPLETED),
            failed=delete(cypher.ENDED_JOBS, cypher.DELETE_JOB, status=JobStatus.FAILED),
            events=delete(cypher.OLD_EVENTS, cypher.DELETE_EVENT),
        )
        if report.jobs or report.events:
            self._queue.write(partial(record_cleanup, report=report))
        if problems:
            raise StoreBusy(f"Cleanup left something behind: {'; '.join(sorted(problems))}")
        return report

    def _delete(
        self,
        find: str,
        delete: str,
        *,
        cutoff: int,
        problems: set[str],
        status: JobStatus | None = None,
    ) -> int:
        (row,) = self._queue.database.autocommit(
            cypher.DELETE_BY_APOC,
            find=find,
            delete=delete,
            page=PAGE,
            status=status,
            cutoff=cutoff,
        )
        if row["failed"]:
            problems.update(row["errors"])
        return int(row["deleted"])

    @property
    def _has_apoc(self) -> bool:
        """Its absence is logged once."""
        found = self._queue.database.has_apoc
        if not found and not self._said_so:
            self._said_so = True
            telemetry.emit("store.apoc_missing")
        return found
