"""The worker side: pick a job up, and end it, always in the name of the lease's token."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from embed_pipeline import telemetry
from embed_pipeline.reaper import statements as sql
from embed_pipeline.reaper.connection import PostgresDatabase
from embed_pipeline.reaper.policy import Fail, ReaperPolicy, Requeue, after_failure
from embed_pipeline.reaper.tables import JobTable, table_of


class Outcome(StrEnum):
    """What became of a job that its worker ended; a lost lease is normal, not an error."""

    DONE = "done"
    FAILED = "failed"
    REQUEUED = "queued"
    LEASE_LOST = "lease lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to work on one job; `row` is all of it as the table has it."""

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
    """Every write names the token, so that a worker whose lease was given away changes nothing."""

    def __init__(self, database: PostgresDatabase, *, policy: ReaperPolicy | None = None) -> None:
        self._database = database
        self._policy = policy or ReaperPolicy()

    def claim(self, stage: str, worker_id: str, *, table: JobTable | None = None) -> Claim | None:
        """The next job of that stage that may run now, or None; counts as an attempt.

        Rows without a stage are of the table's own stage. `worker_id` is for people: two
        processes that share one do not share their leases.
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
        finds = [sql.CLAIM_STAGED_ROW]
        if stage == table.unstaged:
            finds.append(sql.CLAIM_UNSTAGED_ROW)
        for find in finds:
            with self._database.transaction() as connection:
                row = connection.execute(sql.compose(find, table.name), parameters).fetchone()
            if row is not None:
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
        return None

    def extend(self, claim: Claim) -> bool:
        """One heartbeat; False when the lease was given away. Revives one that only ran out."""
        with self._database.transaction() as connection:
            done = connection.execute(
                sql.compose(sql.EXTEND_LEASE, claim.table.name),
                {
                    "key": claim.key,
                    "token": claim.token,
                    "lease": claim.lease.total_seconds(),
                },
            )
            return done.rowcount == 1

    def complete(self, claim: Claim) -> Outcome:
        return self._end(claim, Outcome.DONE, sql.COMPLETE_JOB, "worker:completed")

    def fail(self, claim: Claim, *, code: str, reason: str, retry: bool = False) -> Outcome:
        """For good; with `retry`, only when no attempt is left, else back with backoff."""
        fate = Fail(code=code, reason=reason)
        verdict: Requeue | Fail = fate
        if retry:
            verdict = after_failure(
                claim.attempt, claim.max_attempts, policy=self._policy, otherwise=fate
            )
        told = {"code": code, "reason": reason}
        match verdict:
            case Requeue(after=after):
                backoff = after.total_seconds()
                return self._end(
                    claim,
                    Outcome.REQUEUED,
                    sql.RETRY_JOB,
                    "worker:requeued",
                    backoff=backoff,
                    **told,
                )
            case Fail():
                return self._end(claim, Outcome.FAILED, sql.FAIL_JOB, "worker:failed", **told)

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
            # Perhaps an earlier call did it and its answer got lost.
            receipt = connection.execute(
                sql.compose(sql.STATUS_BY_RECEIPT, claim.table.name), parameters
            ).fetchone()
        if receipt is not None and receipt["status"] == outcome:
            return outcome
        telemetry.emit("lease.lost", count=1, job_id=claim.job_id, worker_id=claim.worker_id)
        return Outcome.LEASE_LOST
