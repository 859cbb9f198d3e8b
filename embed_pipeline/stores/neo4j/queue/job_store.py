"""The JobStore on Neo4j: a guard, a transaction, and the verb's own module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

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
from embed_pipeline.stores.neo4j.driver.database import Row
from embed_pipeline.stores.neo4j.queue import (
    cancelling,
    enqueueing,
    failing,
    leasing,
    recovering,
    rows,
    settling,
)
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase, QueueTransaction
from embed_pipeline.stores.neo4j.queue.breakers import Neo4jBreakers
from embed_pipeline.stores.neo4j.queue.cleaning import Cleaner
from embed_pipeline.stores.neo4j.queue.cypher import control as queue_cypher
from embed_pipeline.stores.neo4j.queue.cypher import jobs as cypher
from embed_pipeline.stores.neo4j.queue.events import Neo4jCounters, Neo4jEvents
from embed_pipeline.stores.neo4j.queue.health import Neo4jHealth
from embed_pipeline.stores.neo4j.queue.history import Neo4jJobHistory
from embed_pipeline.stores.neo4j.queue.switch import Neo4jSwitchBoard
from embed_pipeline.stores.queue.paging import PAGE, page_by_page


class Neo4jJobStore(JobStore):
    def __init__(self, queue: QueueDatabase, *, policy: QueuePolicy | None = None) -> None:
        self.queue = queue
        self._policy = policy or QueuePolicy()
        self._switch = Neo4jSwitchBoard(queue)
        self._breakers = Neo4jBreakers(queue)
        self._health = Neo4jHealth(queue)
        self._events = Neo4jEvents(queue)
        self._counters = Neo4jCounters(queue)
        self._history = Neo4jJobHistory(queue)
        self._cleaner = Cleaner(queue)

    @property
    def switch(self) -> Neo4jSwitchBoard:
        return self._switch

    @property
    def breakers(self) -> Neo4jBreakers:
        return self._breakers

    @property
    def health(self) -> Neo4jHealth:
        return self._health

    @property
    def events(self) -> Neo4jEvents:
        return self._events

    @property
    def counters(self) -> Neo4jCounters:
        return self._counters

    @property
    def history(self) -> Neo4jJobHistory:
        return self._history

    def enqueue(self, requests: Sequence[JobRequest]) -> EnqueueReport:
        outcomes: list[Enqueued] = []
        ids = enqueueing.new_ids(len(requests))
        for start in range(0, len(requests), PAGE):
            page = slice(start, start + PAGE)
            outcomes += self._admit(requests[page], ids[page])
        return EnqueueReport(tuple(outcomes))

    def _admit(self, requests: Sequence[JobRequest], ids: Sequence[JobId]) -> list[Enqueued]:
        def work(transaction: QueueTransaction) -> list[Enqueued]:
            return enqueueing.admit(
                transaction, requests, ids=ids, max_attempts=self._policy.max_attempts
            )

        return self.queue.write(work)

    def lease(self, *, owner: str, model: str, limit: int, token: str) -> Lease:
        request = leasing.LeaseRequest(
            owner=owner,
            model=model,
            limit=limit,
            token=token,
            duration=self._policy.lock_duration,
        )
        return self.queue.write(lambda transaction: leasing.lease(transaction, request))

    def heartbeat(self, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        return self.queue.write(lambda transaction: settling.extend(transaction, lease, job_ids))

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> int:
        if not job_ids:
            return 0
        return self.queue.write(lambda transaction: settling.release(transaction, lease, job_ids))

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
        return self.queue.write(
            lambda transaction: settling.defer(
                transaction, lease, job_ids, error=error, strike=strike, delay=delay
            )
        )

    def complete(
        self, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None = None
    ) -> LeaseResult:
        if not job_ids:
            return LeaseResult()
        return self.queue.write(
            lambda transaction: settling.complete(transaction, lease, job_ids, reason=reason)
        )

    def fail(
        self, lease: Lease, failures: Mapping[JobId, FailureRecord], *, is_counted: bool = False
    ) -> FailReport:
        failing.refuse_critical(failures)
        if not failures:
            return FailReport()
        policy = self._policy.retry
        return self.queue.write(
            lambda transaction: failing.fail(
                transaction, lease, failures, policy=policy, is_counted=is_counted
            )
        )

    def recover_stale(self, *, limit: int = 10_000) -> Recovery:
        return self._recover(
            partial(recovering.lock_stale, max_attempts=self._policy.max_attempts),
            limit=limit,
            reason="lease expired",
        )

    def recover_owner(self, owner: str) -> Recovery:
        return self._recover(
            lambda transaction, page: recovering.lock_owners(transaction, page, owner=owner),
            limit=None,
            reason=f"run {owner} ended",
        )

    def _recover(
        self,
        find: Callable[[QueueTransaction, int], list[Row]],
        *,
        limit: int | None,
        reason: str,
    ) -> Recovery:
        def recover(transaction: QueueTransaction, page: int) -> list[RecoveredJob]:
            # Fewer than asked for is the end, or some were extended just now: the next pass looks.
            stale = find(transaction, page)
            return recovering.recover(
                transaction, stale, policy=self._policy.recovery, reason=reason
            )

        def act(page: int) -> list[RecoveredJob]:
            return self.queue.write(partial(recover, page=page))

        return Recovery(page_by_page(act, limit=limit))

    def retry_failed(
        self, *, category: ErrorCategory | None = None, limit: int = 10_000
    ) -> tuple[JobId, ...]:
        def act(page: int) -> tuple[JobId, ...]:
            return self.queue.write(partial(recovering.retry_failed, category=category, limit=page))

        return page_by_page(act, limit=limit)

    def cancel(
        self, *, entity_uid: EntityUid | None = None, limit: int = PAGE
    ) -> tuple[JobId, ...]:
        return self.queue.write(
            lambda transaction: cancelling.cancel(transaction, entity_uid=entity_uid, limit=limit)
        )

    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        return self._cleaner.cleanup(older_than=older_than)

    def get(self, job_id: JobId) -> EmbedJob | None:
        found = self.queue.read(lambda look: look.all(cypher.GET_JOB, id=job_id))
        return rows.job_of(found[0]["job"]) if found else None

    def failed_jobs(
        self, *, category: ErrorCategory | None = None, limit: int = 100
    ) -> tuple[EmbedJob, ...]:
        found = self.queue.read(
            lambda look: look.all(cypher.FAILED_JOBS, category=category, limit=limit)
        )
        return tuple(rows.job_of(row["job"]) for row in found)

    def now(self) -> datetime:
        return from_ms(self.queue.read(lambda look: look.one(queue_cypher.NOW)["now"]))

    def next_due(self, *, model: str) -> datetime | None:
        due = self.queue.read(lambda look: look.one(cypher.NEXT_DUE, model=model))["due"]
        return None if due is None else from_ms(due)

    def has_stale(self) -> bool:
        has_unended = partial(recovering.has_unended, max_attempts=self._policy.max_attempts)
        return self.queue.read(recovering.has_expired) or self.queue.write(has_unended)

    def live_owners(self) -> frozenset[str]:
        return self.queue.read(leasing.live_owners)

    def get_queue_status(self) -> QueueStatus:
        found = self.queue.read(lambda look: look.all(cypher.COUNT_BY_STATUS))
        return QueueStatus(**{row["status"]: row["jobs"] for row in found})

    def close(self) -> None:
        self.queue.close()
