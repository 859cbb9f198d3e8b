"""The job store of every backend: a guard, a transaction, and the verb's own module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from embed_pipeline.domain.control import ControlState
from embed_pipeline.domain.health import Silence
from embed_pipeline.domain.job import (
    CleanupReport,
    EmbedJob,
    Enqueued,
    EnqueueReport,
    EntityUid,
    FailureRecord,
    JobId,
    JobRequest,
    Live,
    QueueStatus,
)
from embed_pipeline.domain.lease import FailReport, Lease, LeaseResult
from embed_pipeline.domain.recovery import QueuePolicy, RecoveredJob, Recovery
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.stores.queue import control, leased, maintenance
from embed_pipeline.stores.queue.enqueue import enqueue, new_ids
from embed_pipeline.stores.queue.history import Counters, Events, JobHistory
from embed_pipeline.stores.queue.job_table import JobReader
from embed_pipeline.stores.queue.lease import lease
from embed_pipeline.stores.queue.maintenance import PAGE, page_by_page
from embed_pipeline.stores.queue.named_leases import NamedLeases
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline.stores.queue.recover import LockStale, recover
from embed_pipeline.stores.queue.transaction import QueueDatabase, Transaction

P = ParamSpec("P")
T = TypeVar("T")


class QueueJobStore(JobStore):
    def __init__(self, database: QueueDatabase, *, policy: QueuePolicy | None = None) -> None:
        self.database = database
        self._policy = policy or QueuePolicy()
        self._switch = control.SwitchBoard(database)
        self._breakers = control.Breakers(database)
        self._health = control.Health(database, self._policy)
        self._events = Events(database)
        self._counters = Counters(database)
        self._history = JobHistory(database)
        self._named_leases = NamedLeases(database)

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
    def events(self) -> Events:
        return self._events

    @property
    def counters(self) -> Counters:
        return self._counters

    @property
    def named_leases(self) -> NamedLeases:
        return self._named_leases

    @property
    def history(self) -> JobHistory:
        return self._history

    def control_state(self, *, provider: str) -> ControlState:
        return self.database.read(partial(control.read_control, provider=provider))

    def enqueue(self, requests: Sequence[JobRequest]) -> EnqueueReport:
        outcomes: list[Enqueued] = []
        ids = new_ids(len(requests))
        attempts = self._policy.max_attempts
        for start in range(0, len(requests), PAGE):
            page = slice(start, start + PAGE)
            outcomes += self._write(enqueue, requests[page], ids=ids[page], max_attempts=attempts)
        return EnqueueReport(tuple(outcomes))

    def lease(self, *, owner: str, model: str, limit: int, token: str) -> Lease:
        asked = Lease(owner=owner, token=token, duration=self._policy.lock_duration)
        return self._write(lease, asked, model=model, limit=limit)

    def heartbeat(self, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        return self._write(leased.extend, lease, job_ids)

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> int:
        return self._write(leased.release, lease, job_ids) if job_ids else 0

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
        return self._write(leased.defer, lease, job_ids, error=error, strike=strike, delay=delay)

    def complete(
        self, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None = None
    ) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        return self._write(leased.complete, lease, job_ids, reason=reason)

    def fail(
        self, lease: Lease, failures: Mapping[JobId, FailureRecord], *, is_counted: bool = False
    ) -> FailReport:
        leased.refuse_critical(failures)
        if not failures:
            return FailReport()
        policy = self._policy.retry
        return self._write(leased.fail, lease, failures, policy=policy, is_counted=is_counted)

    def recover_stale(self, *, limit: int = 10_000) -> Recovery:
        return self._recover(
            lambda jobs, page: jobs.lock_stale(limit=page), limit=limit, reason="lease expired"
        )

    def recover_owner(self, owner: str) -> Recovery:
        return self._recover(
            lambda jobs, page: jobs.lock_owned(owner, limit=page),
            limit=None,
            reason=f"run {owner} ended",
        )

    def _recover(self, lock: LockStale, *, limit: int | None, reason: str) -> Recovery:
        policy = self._policy.recovery

        def recover_page(page: int) -> list[RecoveredJob]:
            return self._write(recover, lock, limit=page, policy=policy, reason=reason)

        return Recovery(page_by_page(recover_page, limit=limit))

    def retry_failed(
        self, *, category: ErrorCategory | None = None, limit: int = 10_000
    ) -> tuple[JobId, ...]:
        def retry_page(page: int) -> list[JobId]:
            return self._write(maintenance.retry_failed, category=category, limit=page)

        return page_by_page(retry_page, limit=limit)

    def cancel(
        self, *, entity_uid: EntityUid | None = None, limit: int = PAGE
    ) -> tuple[JobId, ...]:
        return self._write(maintenance.cancel, entity_uid=entity_uid, limit=limit)

    def erase(self, entity_uid: EntityUid) -> tuple[JobId, ...]:
        return self._write(maintenance.erase, entity_uid=entity_uid)

    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        return maintenance.cleanup(self.database, older_than=older_than)

    def get(self, job_id: JobId) -> EmbedJob | None:
        return self._read(lambda jobs: jobs.get(job_id))

    def failed_jobs(
        self, *, category: ErrorCategory | None = None, limit: int = 100
    ) -> tuple[EmbedJob, ...]:
        return tuple(self._read(lambda jobs: jobs.failed(category=category, limit=limit)))

    def now(self) -> datetime:
        return self.database.read(lambda reading: reading.now)

    def next_due(self, *, model: str) -> datetime | None:
        return self._read(lambda jobs: jobs.next_due(model=model))

    def has_stale(self) -> bool:
        return self._read(lambda jobs: jobs.has_stale())

    def silence(self) -> Silence:
        return self.database.read(partial(control.read_silence, policy=self._policy))

    def live_owners(self) -> frozenset[str]:
        return self._read(lambda jobs: jobs.live_owners())

    def pending_models(self) -> tuple[str, ...]:
        return self._read(lambda jobs: jobs.pending_models())

    def count_live(self, *, model: str, limit: int) -> Live:
        return self._read(lambda jobs: jobs.count_live(model=model, limit=limit))

    def get_queue_status(self) -> QueueStatus:
        return self._read(lambda jobs: jobs.count_by_status())

    def close(self) -> None:
        self.database.close()

    def _write(
        self, verb: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self.database.write(lambda transaction: verb(transaction, *args, **kwargs))

    def _read(self, find: Callable[[JobReader], T]) -> T:
        return self.database.read(lambda reading: find(reading.jobs))


class OpenQueue:
    """One opened queue: its jobs, and the budgets that are kept beside them."""

    def __init__(self, jobs: QueueJobStore) -> None:
        self.jobs = jobs

    def limiter(self, *, provider: str, limit: RateLimit) -> SharedRateLimiter:
        """By the same connection; costs nothing until it is used."""
        return SharedRateLimiter(self.jobs.database, provider=provider, limit=limit)
