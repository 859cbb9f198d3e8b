"""The statements that change jobs, as the queue's engine asks for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from embed_pipeline.domain.job import (
    EmbedJob,
    EntityUid,
    FailureRecord,
    JobId,
    JobKey,
    JobRequest,
    JobStatus,
)
from embed_pipeline.domain.lease import Head, Lease, Tier
from embed_pipeline.domain.transition import JobChanges, KnownJob
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import STATUSES, failure_fields, to_ms
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.adoption import Adoption
from embed_pipeline.stores.neo4j.queue.cypher import jobs as cypher
from embed_pipeline.stores.neo4j.queue.cypher import leased, recovery
from embed_pipeline.stores.neo4j.queue.reader import Neo4jJobReader
from embed_pipeline.stores.neo4j.queue.session import Session
from embed_pipeline.stores.queue.documents import HEALTH
from embed_pipeline.stores.queue.job_table import JobTable, LeaseView
from embed_pipeline.stores.queue.transaction import Transaction


class Neo4jJobs(Neo4jJobReader, JobTable):
    def __init__(self, session: Session, transaction: Transaction, *, max_attempts: int) -> None:
        super().__init__(session)
        self._transaction = transaction
        self.adoption = Adoption(session, transaction, max_attempts=max_attempts)

    def lock_by_keys(self, keys: Sequence[JobKey]) -> Mapping[JobKey, KnownJob]:
        found = self._session.locked(cypher.LOCK_BY_KEYS, keys=[list(key) for key in keys])
        return {rows.key_of(node): rows.known_job_of(node) for node in found["jobs"]}

    def insert(
        self, requests: Mapping[JobId, JobRequest], *, max_attempts: int
    ) -> Collection[JobId]:
        """A key that another transaction has created meanwhile runs this one again.

        By key: transactions that create some of the same wait for each other in one order.
        """
        in_key_order = sorted(requests.items(), key=lambda new: new[1].key)
        self._session.all(
            cypher.CREATE_JOBS,
            rows=[rows.new_job_fields(*new) for new in in_key_order],
            at=to_ms(self._session.now),
            max_attempts=max_attempts,
        )
        return requests.keys()

    def save(self, changes: Mapping[JobId, JobChanges]) -> None:
        fields = [{"id": id_, "fields": rows.stored_fields(c)} for id_, c in changes.items()]
        self._session.all(cypher.SAVE_JOBS, rows=fields)

    def view_for_lease(
        self, *, owner: str, token: str, model: str, documents: Sequence[str]
    ) -> LeaseView:
        asked = {"names": documents, "owner": owner, "token": token, "model": model}
        seen = self._session.locked(cypher.VIEW_FOR_LEASE, **asked)
        if seen["has_foreign"]:
            self.adoption.adopt_page()
            seen = self._session.locked(cypher.VIEW_FOR_LEASE, **asked)
        return LeaseView(
            documents=rows.documents_of(seen["states"]),
            held=[rows.job_of(node) for node in seen["held"]],
            heads=[Head(**head) for head in seen["heads"]],
        )

    def take(
        self, lease: Lease, *, model: str, tier: Tier, ranks: Sequence[int], limit: int
    ) -> list[EmbedJob]:
        taken = self._session.one(
            cypher.LEASE_JOBS,
            owner=lease.owner,
            token=lease.token,
            duration=rows.in_ms(lease.duration),
            model=model,
            tier=int(tier),
            ranks=list(ranks),
            room=limit,
        )
        return [rows.job_of(node) for node in taken["jobs"]]

    def extend(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        duration = rows.in_ms(lease.duration)
        return self._done(leased.EXTEND_JOBS, lease, job_ids, duration=duration)

    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._done(leased.RELEASE_JOBS, lease, job_ids)

    def defer(
        self,
        lease: Lease,
        job_ids: Sequence[JobId],
        *,
        error: FailureRecord,
        strike: bool,
        delay: timedelta,
    ) -> list[JobId]:
        return self._done(
            leased.DEFER_JOBS,
            lease,
            job_ids,
            error=failure_fields(error),
            strikes=int(strike),
            delay=rows.in_ms(delay),
        )

    def complete(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        """The statement locks the health as well, which every completion changes."""
        ended = self._session.locked(leased.COMPLETE_JOBS, **_held(lease, job_ids))
        self._transaction.note_locked(HEALTH.name, ended["health"])
        return list(ended["done"])

    def complete_and_repeat(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._done(leased.COMPLETE_AND_REPEAT_JOBS, lease, job_ids)

    def completed_before(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        return self._done(leased.FORMERLY_DONE, lease, job_ids)

    def lock_held(self, lease: Lease, job_ids: Sequence[JobId]) -> list[EmbedJob]:
        return self._lock(leased.LOCK_HELD_JOBS, **_held(lease, job_ids))

    def lock_stale(self, *, limit: int) -> list[EmbedJob]:
        if self._malformed(limit=1):
            self.adoption.adopt(self._malformed(limit=limit))
        return self._lock(recovery.LOCK_STALE_JOBS, limit=limit)

    def lock_owned(self, owner: str, *, limit: int) -> list[EmbedJob]:
        tokens = [lease["token"] for lease in self._leases() if lease["owner"] == owner]
        return self._lock(recovery.LOCK_JOBS_OF_OWNER, owner=owner, tokens=tokens, limit=limit)

    def retry_failed(self, *, category: ErrorCategory | None, limit: int) -> list[JobId]:
        found = self._session.one(recovery.RETRY_FAILED, category=category, limit=limit)
        return list(found["done"])

    def cancel(self, *, entity_uid: EntityUid | None, limit: int) -> list[JobId]:
        one_entity = entity_uid is not None
        statement = recovery.CANCEL_JOBS_OF_ENTITY if one_entity else recovery.CANCEL_JOBS
        found = self._session.one(statement, entity_uid=entity_uid, limit=limit)
        return list(found["done"])

    def delete_of_entity(self, entity_uid: EntityUid) -> list[JobId]:
        found = self._session.one(recovery.DELETE_JOBS_OF_ENTITY, entity_uid=entity_uid)
        return list(found["done"])

    def delete_ended(self, *, before: datetime, limit: int) -> list[JobStatus]:
        found = self._session.one(recovery.DELETE_ENDED_PAGE, cutoff=to_ms(before), limit=limit)
        return [STATUSES[status] for status in found["gone"]]

    def delete_events(self, *, before: datetime, limit: int) -> int:
        found = self._session.one(recovery.DELETE_EVENTS_PAGE, cutoff=to_ms(before), limit=limit)
        return int(found["gone"])

    def _lock(self, statement: str, **parameters: object) -> list[EmbedJob]:
        found = self._session.locked(statement, **parameters)
        return [rows.job_of(node) for node in found["jobs"]]

    def _done(
        self, statement: str, lease: Lease, job_ids: Sequence[JobId], **parameters: object
    ) -> list[JobId]:
        found = self._session.one(statement, **_held(lease, job_ids), **parameters)
        return list(found["done"])


def _held(lease: Lease, job_ids: Sequence[JobId]) -> dict[str, object]:
    return {"job_ids": list(job_ids), "owner": lease.owner, "token": lease.token}
