"""One batch of stuck rows: the verdict on each, carried out and told in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg.errors import TriggeredActionException
from psycopg.types.json import Jsonb

from embed_pipeline.reaper import statements as sql
from embed_pipeline.reaper.connection import Connection, named_error
from embed_pipeline.reaper.policy import Fail, Leave, ReaperPolicy, Requeue, verdict_on
from embed_pipeline.reaper.report import Reaped
from embed_pipeline.reaper.tables import JobTable, StuckRow

REQUEUED = "reaper:requeued"
FAILED = "reaper:failed(timeout)"


def judge(row: StuckRow, table: JobTable, policy: ReaperPolicy) -> Reaped | None:
    """None for a row that is to be left alone."""
    holding = row.holding
    verdict = verdict_on(holding, now=row.now, policy=policy)
    if isinstance(verdict, Leave):
        return None
    return Reaped(
        table=table.name,
        key=row.key,
        stage=holding.stage,
        attempt_count=holding.attempt_count or 0,
        max_attempts=policy.allowed(holding.max_attempts),
        locked_by=row.locked_by,
        lease_token=row.lease_token,
        lease_expires_at=holding.lease_expires_at,
        last_heartbeat_at=holding.last_heartbeat_at,
        overdue=row.overdue(policy.leases),
        verdict=verdict,
    )


def carry_out(
    connection: Connection, table: JobTable, judged: Sequence[Reaped]
) -> tuple[list[Reaped], dict[Any, psycopg.Error]]:
    """What was done, and the rows that the table's own rules would not let us change.

    Such a row, met by a constraint or trigger of its owners, must not hold up the rest: the batch
    is tried as a whole, and only when that is refused row by row.
    """
    if not judged:
        return [], {}
    whole = _refusal(connection, table, judged)
    if whole is None:
        return list(judged), {}
    refusals: dict[Any, psycopg.Error] = {}
    for one in judged:
        refusal = _refusal(connection, table, [one])
        if refusal is not None:
            refusals[one.key] = refusal
    return [one for one in judged if one.key not in refusals], refusals


def _refusal(
    connection: Connection, table: JobTable, judged: Sequence[Reaped]
) -> psycopg.Error | None:
    try:
        with connection.transaction():  # a savepoint
            _apply(connection, table, judged)
    except psycopg.Error as error:
        if named_error(error) is not None:
            raise
        return error
    return None


def _apply(connection: Connection, table: JobTable, judged: Sequence[Reaped]) -> None:
    requeues = {one.key: one.verdict.after for one in judged if isinstance(one.verdict, Requeue)}
    failures = {one.key: one.verdict for one in judged if isinstance(one.verdict, Fail)}
    changed = 0
    if requeues:
        backoffs = [after.total_seconds() for after in requeues.values()]
        changed += connection.execute(
            sql.compose(sql.REQUEUE_ROWS, table.name),
            {"keys": list(requeues), "backoffs": backoffs},
        ).rowcount
    for end in set(failures.values()):
        keys = [key for key, verdict in failures.items() if verdict == end]
        changed += connection.execute(
            sql.compose(sql.FAIL_ROWS, table.name),
            {"keys": keys, "code": end.code, "reason": end.reason},
        ).rowcount
    if changed < len(judged):  # all are locked by this transaction: no worker took one away
        kept = f"row {judged[0].job_id}" if len(judged) == 1 else "some of the rows"
        raise TriggeredActionException(f"A trigger or rule of {table.name} leaves {kept} as it was")
    assert changed == len(judged), "an id names one row"
    connection.execute(
        sql.APPEND_EVENTS,
        {"keys": [one.key for one in judged], "data": [Jsonb(event_of(one)) for one in judged]},
    )


def event_of(reaped: Reaped) -> dict[str, object]:
    """What `job_events.data` tells."""
    details: dict[str, object] = {
        "job_id": reaped.job_id,
        "stage": reaped.stage,
        "attempt_count": reaped.attempt_count,
        "max_attempts": reaped.max_attempts,
        "locked_by": reaped.locked_by,
        "lease_token": reaped.lease_token,
        "lease_expires_at": _moment(reaped.lease_expires_at),
        "last_heartbeat_at": _moment(reaped.last_heartbeat_at),
        "overdue_sec": round(reaped.overdue.total_seconds(), 3),
    }
    match reaped.verdict:
        case Requeue(after=after):
            details["backoff_sec"] = after.total_seconds()
            return {"type": REQUEUED, "table": reaped.table, "details": details}
        case Fail(code=code, reason=reason):
            details |= {"fail_code": code, "fail_reason": reason}
            return {"type": FAILED, "table": reaped.table, "details": details}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
