"""The JobStore on SQLite: a guard, a transaction, and the verb's own module."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

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
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.stores.encoding import from_ms
from embed_pipeline.stores.queue.paging import PAGE, page_by_page
from embed_pipeline.stores.sqlite.queue import (
    cancelling,
    cleaning,
    enqueueing,
    failing,
    leasing,
    recovering,
    rows,
    settling,
)
from embed_pipeline.stores.sqlite.queue import job_sql as sql
from embed_pipeline.stores.sqlite.queue.backend import QueueFile, QueueTransaction
from embed_pipeline.stores.sqlite.queue.breakers import SqliteBreakers
from embed_pipeline.stores.sqlite.queue.events import SqliteCounters, SqliteEvents
from embed_pipeline.stores.sqlite.queue.health import SqliteHealth
from embed_pipeline.stores.sqlite.queue.history import SqliteJobHistory
from embed_pipeline.stores.sqlite.queue.switch import SqliteSwitchBoard


class SqliteJobStore(JobStore):
    def __init__(self, queue: QueueFile, *, policy: QueuePolicy | None = None) -> None:
        self.queue = queue
        self._policy = policy or QueuePolicy()
        self._switch = SqliteSwitchBoard(queue)
        self._breakers = SqliteBreakers(queue)
        self._health = SqliteHealth(queue)
        self._events = SqliteEvents(queue)
        self._counters = SqliteCounters(queue)
        self._history = SqliteJobHistory(queue)

    @property
    def switch(self) -> SqliteSwitchBoard:
        return self._switch

    @property
    def breakers(self) -> SqliteBreakers:
        return self._breakers

    @property
    def health(self) -> SqliteHealth:
        return self._health

    @property
    def events(self) -> SqliteEvents:
        return self._events

    @property
    def counters(self) -> SqliteCounters:
        return self._counters

    @property
    def history(self) -> SqliteJobHistory:
        return self._history

    def enqueue(self, requests: Sequence[JobRequest]) -> EnqueueReport:
        outcomes: list[Enqueued] = []
        for start in range(0, len(requests), PAGE):
            page = requests[start : start + PAGE]
            with self.queue.transaction() as transaction:
                outcomes += enqueueing.admit(
                    transaction, page, max_attempts=self._policy.max_attempts
                )
        return EnqueueReport(tuple(outcomes))

    def lease(self, *, owner: str, model: str, limit: int, token: str) -> Lease:
        request = leasing.LeaseRequest(
            owner=owner,
            model=model,
            limit=limit,
            token=token,
            duration=self._policy.lock_duration,
        )
        with self.queue.transaction() as transaction:
            return leasing.lease(transaction, request)

    def heartbeat(self, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        with self.queue.transaction() as transaction:
            return settling.extend(transaction, lease, job_ids)

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> int:
        if not job_ids:
            return 0
        with self.queue.transaction() as transaction:
            return settling.release(transaction, lease, job_ids)

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
        with self.queue.transaction() as transaction:
            return settling.defer(
                transaction, lease, job_ids, error=error, strike=strike, delay=delay
            )

    def complete(
        self, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None = None
    ) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        with self.queue.transaction() as transaction:
            return settling.complete(transaction, lease, job_ids, reason=reason)

    def fail(
        self, lease: Lease, failures: Mapping[JobId, FailureRecord], *, is_counted: bool = False
    ) -> FailReport:
        if not failures:
            return FailReport()
        with self.queue.transaction() as transaction:
            return failing.fail(
                transaction, lease, failures, policy=self._policy.retry, is_counted=is_counted
            )

    def recover_stale(self, *, limit: int = 10_000) -> Recovery:
        return self._recover(
            lambda transaction, page: transaction.all(
                sql.STALE_JOBS, now=transaction.now_ms, limit=page
            ),
            limit=limit,
            reason="lease expired",
        )

    def recover_owner(self, owner: str) -> Recovery:
        return self._recover(
            lambda transaction, page: transaction.all(sql.JOBS_OF_OWNER, owner=owner, limit=page),
            limit=None,
            reason=f"run {owner} ended",
        )

    def _recover(
        self,
        find: Callable[[QueueTransaction, int], list[sqlite3.Row]],
        *,
        limit: int | None,
        reason: str,
    ) -> Recovery:
        def act(page: int) -> list[RecoveredJob]:
            with self.queue.transaction() as transaction:
                stale = find(transaction, page)
                return recovering.recover(
                    transaction, stale, policy=self._policy.recovery, reason=reason
                )

        return Recovery(page_by_page(act, limit=limit))

    def retry_failed(
        self, *, category: ErrorCategory | None = None, limit: int = 10_000
    ) -> tuple[JobId, ...]:
        def act(page: int) -> tuple[JobId, ...]:
            with self.queue.transaction() as transaction:
                return recovering.retry_failed(transaction, category=category, limit=page)

        return page_by_page(act, limit=limit)

    def cancel(
        self, *, entity_uid: EntityUid | None = None, limit: int = PAGE
    ) -> tuple[JobId, ...]:
        with self.queue.transaction() as transaction:
            return cancelling.cancel(transaction, entity_uid=entity_uid, limit=limit)

    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        return cleaning.cleanup(self.queue, older_than=older_than, page=PAGE)

    def get(self, job_id: JobId) -> EmbedJob | None:
        with self.queue.reading() as look:
            found = look.all(sql.GET_JOB, id=job_id)
        return rows.job_of(found[0]) if found else None

    def failed_jobs(
        self, *, category: ErrorCategory | None = None, limit: int = 100
    ) -> tuple[EmbedJob, ...]:
        with self.queue.reading() as look:
            found = look.all(sql.FAILED_JOBS, category=category, limit=limit)
        return tuple(rows.job_of(row) for row in found)

    def now(self) -> datetime:
        return self.queue.clock.now()

    def next_due(self, *, model: str) -> datetime | None:
        with self.queue.reading() as look:
            due = look.all(sql.NEXT_DUE, model=model)[0]["due"]
        return None if due is None else from_ms(due)

    def has_stale(self) -> bool:
        with self.queue.reading() as look:
            return bool(look.all(sql.STALE_JOBS, now=look.now_ms, limit=1))

    def live_owners(self) -> frozenset[str]:
        with self.queue.reading() as look:
            return frozenset(row["name"] for row in look.all(sql.LIVE_OWNERS, now=look.now_ms))

    def get_queue_status(self) -> QueueStatus:
        with self.queue.reading() as look:
            row = look.all(sql.COUNT_BY_STATUS)[0]
        return QueueStatus(
            pending=row["pending"],
            processing=row["processing"],
            completed=row["ended"] - row["failed"],
            failed=row["failed"],
        )

    def close(self) -> None:
        self.queue.close()
