"""The worker side: claim a job, extend its lease, complete or fail it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, LiteralString

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from embed_pipeline import telemetry
from embed_pipeline.reaper import statements as sql
from embed_pipeline.reaper.connection import PostgresDatabase
from embed_pipeline.reaper.policy import Fail, ReaperPolicy, after_failure
from embed_pipeline.reaper.tables import JobTable, table_of


class Outcome(StrEnum):
    """The result of ending a job; a lost lease is normal, not an error."""

    DONE = "done"
    FAILED = "failed"
    REQUEUED = "queued"
    LEASE_LOST = "lease lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease on one job; `row` has all columns of the table."""

    table: JobTable
    key: Any
    stage: str
    worker_id: str
    token: str
    attempt: int
    max_attempts: int | None
    lease: timedelta
    row: Mapping[str, Any]

    @property
    def job_id(self) -> str:
        return str(self.key)


class JobQueue:
    """Every write names the lease token: a worker that lost its lease changes nothing."""

    def __init__(self, database: PostgresDatabase, *, policy: ReaperPolicy | None = None) -> None:
        self._database = database
        self._policy = policy or ReaperPolicy()

    def claim(self, stage: str, worker_id: str, *, table: JobTable | None = None) -> Claim | None:
        """Lease the next job of the stage that is due, or None; counts as an attempt.

        Rows without a stage have the table's own. `worker_id` is for people: two processes may
        share one, but not a lease.
        """
        table = table or table_of(stage)
        lease = self._policy.leases.of(stage)
        token = str(uuid.uuid4())
        parameters = {
            "stage": stage,
            "worker_id": worker_id,
            "token": token,
            "lease": lease.total_seconds(),
            "table": table.name,
        }
        row = self._take(table, sql.CLAIM_STAGED_ROW, parameters)
        if row is None and stage == table.unstaged:
            row = self._take(table, sql.CLAIM_UNSTAGED_ROW, parameters)
        if row is None:
            return None
        return Claim(
            table=table,
            key=row["id"],
            stage=stage,
            worker_id=worker_id,
            token=token,
            attempt=row["attempt_count"],
            max_attempts=row["max_attempts"],
            lease=lease,
            row=row,
        )

    def _take(
        self, table: JobTable, find: LiteralString, parameters: Mapping[str, object]
    ) -> DictRow | None:
        with self._database.transaction() as connection:
            return connection.execute(sql.compose(find, table.name), parameters).fetchone()

    def extend(self, claim: Claim) -> bool:
        """One heartbeat; False when the lease is lost. A lease that only ran out is revived."""
        with self._database.transaction() as connection:
            done = connection.execute(
                sql.compose(sql.EXTEND_LEASE, claim.table.name),
                {"key": claim.key, "token": claim.token, "lease": claim.lease.total_seconds()},
            )
            return done.rowcount == 1

    def complete(self, claim: Claim) -> Outcome:
        return self._end(claim, Outcome.DONE, sql.COMPLETE_JOB, "worker:completed")

    def fail(self, claim: Claim, *, code: str, reason: str, retry: bool = False) -> Outcome:
        """Final; with `retry`, only when no attempt is left, otherwise requeued with backoff."""
        final = Fail(code=code, reason=reason)
        decision = (
            final
            if not retry
            else after_failure(claim.attempt, claim.max_attempts, policy=self._policy, final=final)
        )
        facts: dict[str, object] = {"code": code, "reason": reason}
        if isinstance(decision, Fail):
            return self._end(claim, Outcome.FAILED, sql.FAIL_JOB, "worker:failed", **facts)
        facts["backoff"] = decision.after.total_seconds()
        return self._end(claim, Outcome.REQUEUED, sql.RETRY_JOB, "worker:requeued", **facts)

    def _end(
        self, claim: Claim, outcome: Outcome, statement: LiteralString, event: str, **facts: object
    ) -> Outcome:
        details = {
            "job_id": claim.job_id,
            "stage": claim.stage,
            "attempt_count": claim.attempt,
            "locked_by": claim.worker_id,
            "lease_token": claim.token,
            **facts,
        }
        parameters = {
            **facts,
            "key": claim.key,
            "token": claim.token,
            "type": event,
            "table": claim.table.name,
            "details": Jsonb(details),
        }
        with self._database.transaction() as connection:
            ended = connection.execute(sql.compose(statement, claim.table.name), parameters)
            if ended.rowcount == 1:
                return outcome
            # An earlier call may have done it and lost its answer.
            receipt = connection.execute(
                sql.compose(sql.STATUS_BY_RECEIPT, claim.table.name), parameters
            ).fetchone()
        if receipt is not None and receipt["status"] == outcome:
            return outcome
        telemetry.emit("lease.lost", count=1, job_id=claim.job_id, worker_id=claim.worker_id)
        return Outcome.LEASE_LOST
