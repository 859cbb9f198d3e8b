"""The two verbs that are different on Neo4j: cleanup by APOC, and the check for stale jobs."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from embed_pipeline import telemetry
from embed_pipeline.domain.job import CleanupReport, JobStatus
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.errors import StoreBusy
from embed_pipeline.stores.encoding import to_ms
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.cypher import recovery as cypher
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.maintenance import PAGE, record_cleanup


class Neo4jJobStore(QueueJobStore):
    def __init__(self, queue: Neo4jQueue, *, policy: QueuePolicy | None = None) -> None:
        super().__init__(queue, policy=policy)
        self._queue = queue
        self._said_so = False

    def has_stale(self) -> bool:
        """Indexes first; then a sample of jobs that may be in none of them, which are adopted."""
        return super().has_stale() or self._queue.write(
            lambda transaction: transaction.jobs.survey.has_unended()
        )

    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        """By `apoc.periodic.iterate`: small transactions of the server's own.

        Raises StoreBusy when something could not be deleted; the rest is, and is recorded.
        """
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
