"""Deleting what is past retention, in small transactions of the server's own.

By `apoc.periodic.iterate`, or by Cypher's own batches where APOC is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from embed_pipeline import telemetry
from embed_pipeline.domain.job import CleanupReport, JobStatus
from embed_pipeline.errors import StoreBusy
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase, QueueTransaction
from embed_pipeline.stores.neo4j.queue.cypher import recovery as cypher

PAGE = 1_000
"""Deletions per transaction, so that nobody waits long for one of their locks."""


@dataclass(slots=True)
class _Swept:
    """What was deleted so far, and what stands in the way of the rest."""

    deleted: int = 0
    problems: list[str] = field(default_factory=list)


class Cleaner:
    def __init__(self, queue: QueueDatabase) -> None:
        self._queue = queue
        self._said_so = False

    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        """Jobs first, then events, then what was deleted is recorded.

        Raises StoreBusy when something could not be deleted; the rest is, and is recorded.
        """
        age = rows.in_ms(older_than)
        cutoff = self._queue.read(lambda look: look.one(cypher.CUTOFF, age=age))["cutoff"]
        swept = {status: self._sweep_jobs(status, cutoff) for status in _ENDED}
        events = self._sweep_events(cutoff)
        report = CleanupReport(
            completed=swept[JobStatus.COMPLETED].deleted,
            failed=swept[JobStatus.FAILED].deleted,
            events=events.deleted,
        )
        if report.jobs or report.events:
            self._queue.write(lambda transaction: _account(transaction, report))
        problems = [p for part in (*swept.values(), events) for p in part.problems]
        if problems:
            raise StoreBusy(f"Cleanup left something behind: {'; '.join(sorted(set(problems)))}")
        return report

    def _sweep_jobs(self, status: JobStatus, cutoff: int) -> _Swept:
        facts = {"status": status.value, "cutoff": cutoff}
        if self.has_apoc:
            return self._by_apoc(cypher.ENDED_JOBS, cypher.DELETE_JOB, facts)
        return self._alone(cypher.DELETE_ENDED_JOBS, facts)

    def _sweep_events(self, cutoff: int) -> _Swept:
        facts = {"status": None, "cutoff": cutoff}
        if self.has_apoc:
            return self._by_apoc(cypher.OLD_EVENTS, cypher.DELETE_EVENT, facts)
        return self._alone(cypher.DELETE_OLD_EVENTS, facts)

    @property
    def has_apoc(self) -> bool:
        """Its absence is said once."""
        found = self._queue.database.has_apoc
        if not found and not self._said_so:
            self._said_so = True
            telemetry.emit("store.apoc_missing")
        return found

    def _by_apoc(self, find: str, delete: str, facts: Mapping[str, object]) -> _Swept:
        return self._alone(
            cypher.DELETE_BY_APOC, {"find": find, "delete": delete, "page": PAGE, **facts}
        )

    def _alone(self, statement: str, parameters: Mapping[str, object]) -> _Swept:
        row = self._queue.run_alone(statement, **parameters)
        return _Swept(deleted=row["deleted"], problems=row["errors"] if row["failed"] else [])


_ENDED = (JobStatus.COMPLETED, JobStatus.FAILED)


def _account(transaction: QueueTransaction, report: CleanupReport) -> None:
    transaction.record(
        "jobs.cleaned_up", jobs=report.jobs, failed=report.failed, events=report.events
    )
    transaction.count(jobs_cleaned_up=report.jobs)
