"""The job store of every backend: a guard, a transaction, and the verb's own module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from embed_pipeline.domain.control import ControlState
from embed_pipeline.domain.job import (
    CleanupReport,
    EmbedJob,
    Enqueued,
    EnqueueReport,
    EntityUid,
    FailureRecord,
    JobId,
    JobRequest,
    QueueStatus,
)
from embed_pipeline.domain.lease import FailReport, Lease, LeaseResult
from embed_pipeline.domain.policy import QueuePolicy
from embed_pipeline.domain.recovery import RecoveredJob, Recovery
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.stores.queue import control, leased, maintenance
from embed_pipeline.stores.queue.enqueue import enqueue, new_ids
from embed_pipeline.stores.queue.history import JobHistory
from embed_pipeline.stores.queue.lease import lease
from embed_pipeline.stores.queue.maintenance import PAGE, page_by_page
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline.stores.queue.recover import recover
from embed_pipeline.stores.queue.transaction import QueueDatabase, Transaction


class QueueJobStore(JobStore):
    def __init__(self, database: QueueDatabase, *, policy: QueuePolicy | None = None) -> None:
        self.database = database
        self._policy = policy or QueuePolicy()
        self._switch = control.SwitchBoard(database)
        self._breakers = control.Breakers(database)
        self._health = control.Health(database)
        self._events = control.Events(database)
        self._counters = control.Counters(database)
        self._history = JobHistory(database)

    @property
    def switch(self) -> control.SwitchBoard:
        return self._switch

    @property
    def breakers(self) -> control.Breakers:
        return self._breakers

    @property
    def health(self) -> control.Health:
        return self._health

    @property
    def events(self) -> control.Events:
        return self._events

    @property
    def counters(self) -> control.Counters:
        return self._counters

    @property
    def history(self) -> JobHistory:
        return self._history

    def control_state(self, *, provider: str) -> ControlState:
        return self.database.read(partial(control.read_control, provider=provider))

    def enqueue(self, requests: Sequence[JobRequest]) -> EnqueueReport:
        outcomes: list[Enqueued] = []
        ids = new_ids(len(requests))
        for start in range(0, len(requests), PAGE):
            page = slice(start, start + PAGE)
            outcomes += self.database.write(
                partial(
                    enqueue,
                    requests=requests[page],
                    ids=ids[page],
                    max_attempts=self._policy.max_attempts,
                )
            )
        return EnqueueReport(tuple(outcomes))

    def lease(self, *, owner: str, model: str, limit: int, token: str) -> Lease:
        asked = Lease(owner=owner, token=token, duration=self._policy.lock_duration)
        return self.database.write(partial(lease, asked=asked, model=model, limit=limit))

    def heartbeat(self, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        return self.database.write(partial(leased.extend, lease=lease, job_ids=job_ids))

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> int:
        if not job_ids:
            return 0
        return self.database.write(partial(leased.release, lease=lease, job_ids=job_ids))

    def defer(
        self,
        lease: Lease,
        job_ids: Sequence[JobId],
        *,
        error: FailureRecord,
        strike: bool = False,
        delay: timedelta = timedelta(0),
    ) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        return self.database.write(
            partial(
                leased.defer, lease=lease, job_ids=job_ids, error=error, strike=strike, delay=delay
            )
        )

    def complete(
        self, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None = None
    ) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        return self.database.write(
            partial(leased.complete, lease=lease, job_ids=job_ids, reason=reason)
        )

    def fail(
        self, lease: Lease, failures: Mapping[JobId, FailureRecord], *, is_counted: bool = False
    ) -> FailReport:
        leased.refuse_critical(failures)
        if not failures:
            return FailReport()
        return self.database.write(
            partial(
                leased.fail,
                lease=lease,
                failures=failures,
                policy=self._policy.retry,
                is_counted=is_counted,
            )
        )

    def recover_stale(self, *, limit: int = 10_000) -> Recovery:
        return self._recover(
            lambda transaction, page: transaction.jobs.lock_stale(limit=page),
            limit=limit,
            reason="lease expired",
        )

    def recover_owner(self, owner: str) -> Recovery:
        return self._recover(
            lambda transaction, page: transaction.jobs.lock_owned(owner, limit=page),
            limit=None,
            reason=f"run {owner} ended",
        )

    def _recover(
        self,
        lock: Callable[[Transaction, int], Sequence[EmbedJob]],
        *,
        limit: int | None,
        reason: str,
    ) -> Recovery:
        def work(transaction: Transaction, page: int) -> list[RecoveredJob]:
            stale = lock(transaction, page)
            return recover(transaction, stale, policy=self._policy.recovery, reason=reason)

        def act(page: int) -> list[RecoveredJob]:
            return self.database.write(partial(work, page=page))

        return Recovery(page_by_page(act, limit=limit))

    def retry_failed(
        self, *, category: ErrorCategory | None = None, limit: int = 10_000
    ) -> tuple[JobId, ...]:
        def act(page: int) -> list[JobId]:
            return self.database.write(
                partial(maintenance.retry_failed, category=category, limit=page)
            )

        return page_by_page(act, limit=limit)

    def cancel(
        self, *, entity_uid: EntityUid | None = None, limit: int = PAGE
    ) -> tuple[JobId, ...]:
        return self.database.write(partial(maintenance.cancel, entity_uid=entity_uid, limit=limit))

    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        return maintenance.cleanup(self.database, older_than=older_than)

    def get(self, job_id: JobId) -> EmbedJob | None:
        return self.database.read(lambda reading: reading.jobs.get(job_id))

    def failed_jobs(
        self, *, category: ErrorCategory | None = None, limit: int = 100
    ) -> tuple[EmbedJob, ...]:
        return tuple(
            self.database.read(lambda reading: reading.jobs.failed(category=category, limit=limit))
        )

    def now(self) -> datetime:
        return self.database.read(lambda reading: reading.now)

    def next_due(self, *, model: str) -> datetime | None:
        return self.database.read(lambda reading: reading.jobs.next_due(model=model))

    def has_stale(self) -> bool:
        return self.database.read(lambda reading: reading.jobs.has_stale())

    def live_owners(self) -> frozenset[str]:
        return self.database.read(lambda reading: reading.jobs.live_owners())

    def get_queue_status(self) -> QueueStatus:
        return self.database.read(lambda reading: reading.jobs.count_by_status())

    def close(self) -> None:
        self.database.close()


class OpenQueue:
    """One opened queue: its jobs, and the budgets that are kept beside them."""

    def __init__(self, jobs: QueueJobStore) -> None:
        self.jobs = jobs

    def limiter(self, *, provider: str, limit: RateLimit) -> SharedRateLimiter:
        """By the same connection; costs nothing until it is used."""
        return SharedRateLimiter(self.jobs.database, provider=provider, limit=limit)
