"""What happened in the queue before a command was called."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta

from embed_pipeline import wiring
from embed_pipeline.domain.job import EntityUid, FailureRecord, JobId, JobRequest
from embed_pipeline.domain.lease import Lease
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.settings import Settings
from embed_pipeline_tests.clocks import FakeClock

MODEL = "mock/mock@64"


def failure(
    category: ErrorCategory = ErrorCategory.PERMANENT, message: str = "It was refused."
) -> FailureRecord:
    return FailureRecord(
        category=category, error_type="Refused", message=message, stack="the stack of it"
    )


class Past:
    """Jobs that were leased and ended `ago`, by a store whose clock stood there."""

    def __init__(self, settings: Settings, now: datetime) -> None:
        self._settings, self._now = settings, now

    def leased(self, *names: str, ago: timedelta, owner: str = "vanished") -> tuple[JobId, ...]:
        with closing(self._store(ago)) as jobs:
            return self._lease(jobs, names, owner).job_ids

    def completed(self, *names: str, ago: timedelta) -> None:
        with closing(self._store(ago)) as jobs:
            lease = self._lease(jobs, names, "worker")
            jobs.complete(lease, lease.job_ids)

    def failed(
        self, *names: str, ago: timedelta = timedelta(), how: FailureRecord | None = None
    ) -> tuple[JobId, ...]:
        with closing(self._store(ago)) as jobs:
            lease = self._lease(jobs, names, "worker")
            report = jobs.fail(lease, {job_id: how or failure() for job_id in lease.job_ids})
            return report.failed

    def _store(self, ago: timedelta) -> JobStore:
        return wiring.open_job_store(self._settings, clock=FakeClock(self._now - ago))

    def _lease(self, jobs: JobStore, names: tuple[str, ...], owner: str) -> Lease:
        jobs.enqueue(
            [JobRequest(entity_uid=EntityUid(name), model=MODEL, version="1") for name in names]
        )
        lease = jobs.lease(owner=owner, model=MODEL, limit=len(names), token=f"{owner}{names}")
        assert len(lease.jobs) == len(names)
        return lease
