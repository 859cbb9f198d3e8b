"""Carries out the decisions on one batch of stuck rows, with their events, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.errors import TriggeredActionException
from psycopg.types.json import Jsonb

from embed_pipeline.reaper import statements as sql
from embed_pipeline.reaper.connection import Connection, named_error
from embed_pipeline.reaper.policy import Fail, Requeue
from embed_pipeline.reaper.report import Reaped
from embed_pipeline.reaper.tables import JobTable


def carry_out(
    connection: Connection, table: JobTable, decided: Sequence[Reaped]
) -> tuple[list[Reaped], dict[Any, psycopg.Error]]:
    """Return what was done, and by key the rows that a rule of the table protects.

    A row that a constraint or trigger of the table's owners refuses must not hold up the rest. The
    batch is tried as a whole, and row by row only when that is refused.
    """
    if not decided or _refusal(connection, table, decided) is None:
        return list(decided), {}
    tried = {one.job.key: _refusal(connection, table, [one]) for one in decided}
    refusals = {key: refusal for key, refusal in tried.items() if refusal is not None}
    return [one for one in decided if one.job.key not in refusals], refusals


def _refusal(
    connection: Connection, table: JobTable, decided: Sequence[Reaped]
) -> psycopg.Error | None:
    try:
        with connection.transaction():  # a savepoint
            _apply(connection, table, decided)
    except psycopg.Error as error:
        if named_error(error) is not None:
            raise
        return error
    return None


def _apply(connection: Connection, table: JobTable, decided: Sequence[Reaped]) -> None:
    """One statement for each distinct decision: a handful, since backoffs come from a ladder."""
    changed = 0
    for decision in {one.decision for one in decided}:
        keys = [one.job.key for one in decided if one.decision == decision]
        facts: dict[str, object] = {"keys": keys}
        match decision:
            case Requeue(after=after):
                statement = sql.REQUEUE_ROWS
                facts["backoff"] = after.total_seconds()
            case Fail(code=code, reason=reason):
                statement = sql.FAIL_ROWS
                facts |= {"code": code, "reason": reason}
        changed += connection.execute(sql.compose(statement, table.name), facts).rowcount
    if changed < len(decided):  # all are locked by this transaction: no worker took one away
        kept = f"row {decided[0].job.job_id}" if len(decided) == 1 else "some of the rows"
        raise TriggeredActionException(f"A trigger or rule of {table.name} leaves {kept} as it was")
    assert changed == len(decided), "an id names one row"
    connection.execute(
        sql.compose(sql.APPEND_EVENTS, table.name),
        {
            "keys": [one.job.key for one in decided],
            "data": Jsonb({one.job.job_id: one.event for one in decided}),
        },
    )
