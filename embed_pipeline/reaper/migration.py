"""Adds to existing tables what the reaper needs; removes nothing, and may be run again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import LiteralString

from psycopg import sql

from embed_pipeline import telemetry
from embed_pipeline.errors import SchemaMissing, StoreBusy
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.reaper import schema_statements as ddl
from embed_pipeline.reaper.connection import Connection, PostgresDatabase
from embed_pipeline.reaper.statements import compose
from embed_pipeline.reaper.tables import EVENTS, TABLES, JobTable, refuse_zoneless

LOCK = 0x72656170_6572  # "reaper", in the space of advisory locks
LOCK_TIMEOUT = timedelta(minutes=2)
TABLE_LOCK_WAIT = "5s"


@dataclass(frozen=True, slots=True)
class Step:
    """One statement to run; `text` is exactly what is sent."""

    table: str
    text: str


def plan(
    database: PostgresDatabase,
    *,
    tables: Sequence[JobTable] = TABLES,
    create_tables: bool = False,
) -> tuple[Step, ...]:
    """What `migrate` would do now; empty when the schema is complete.

    Raises SchemaMissing for a job table that does not exist, unless it may be created, and for one
    whose times have no time zone.
    """
    with database.session() as connection:
        return tuple(_steps(connection, tables, create_tables))


def migrate(
    database: PostgresDatabase,
    *,
    tables: Sequence[JobTable] = TABLES,
    create_tables: bool = False,
    clock: Clock | None = None,
) -> tuple[Step, ...]:
    """Run the plan and return it.

    Raises StoreBusy when a table stays locked for longer than a few seconds; the steps before stay
    done, and the next call continues from there.
    """
    with database.session() as connection, _migration_lock(connection, clock or SystemClock()):
        steps = tuple(_steps(connection, tables, create_tables))
        for step in steps:
            # CONCURRENTLY waits for other transactions, but none waits for it: no limit.
            wait = "0" if " CONCURRENTLY " in step.text else TABLE_LOCK_WAIT
            connection.execute(ddl.LIMIT_LOCK_WAIT, {"wait": wait})
            connection.execute(step.text.encode())
            telemetry.emit("reaper.schema_extended", table=step.table, statement=step.text)
    return steps


def _steps(
    connection: Connection, tables: Sequence[JobTable], create_tables: bool
) -> Iterator[Step]:
    for table in tables:
        yield from _job_table_steps(connection, table.name, create_tables)
    columns = _columns(connection, EVENTS)
    if not columns:
        yield _step(connection, EVENTS, ddl.CREATE_EVENTS)
    else:
        yield from _column_steps(connection, EVENTS, columns, ddl.EVENT_COLUMNS)
    yield from _index_steps(connection, EVENTS, ddl.EVENT_INDEXES)


def _job_table_steps(connection: Connection, table: str, create: bool) -> Iterator[Step]:
    columns = _columns(connection, table)
    if not columns and create:
        yield _step(connection, table, ddl.CREATE_JOBS)
    elif not columns:
        raise SchemaMissing(
            f"The reaper's database has no table {table} in its search path; `embed-pipeline"
            " reaper init --create-tables` makes an empty one."
        )
    elif missing := [name for name in ddl.REQUIRED_COLUMNS if name not in columns]:
        raise SchemaMissing(f"The table {table} has no column {missing[0]}, which jobs need.")
    refuse_zoneless(table, columns)
    yield from _column_steps(connection, table, columns, ddl.JOB_COLUMNS)
    yield from _index_steps(connection, table, ddl.INDEXES)


def _column_steps(
    connection: Connection,
    table: str,
    present: Collection[str],
    wanted: Mapping[str, LiteralString],
) -> Iterator[Step]:
    additions = [
        compose(ddl.ADD_COLUMN, table, name=sql.Identifier(name), kind=sql.SQL(kind))
        for name, kind in wanted.items()
        if name not in present
    ]
    if additions:
        columns = sql.SQL(",\n    ").join(additions)
        yield _step(connection, table, ddl.ADD_COLUMNS, columns=columns)


def _index_steps(
    connection: Connection, table: str, wanted: Mapping[str, LiteralString]
) -> Iterator[Step]:
    valid = {
        row["name"]: row["valid"]
        for row in connection.execute(ddl.TABLE_INDEXES, {"table": table}).fetchall()
    }
    for suffix, statement in wanted.items():
        index = f"{table}_{suffix}"
        if valid.get(index) is False:
            yield _step(connection, table, ddl.DROP_INVALID_INDEX, index=sql.Identifier(index))
        if not valid.get(index):
            yield _step(connection, table, statement, index=sql.Identifier(index))


def _columns(connection: Connection, table: str) -> dict[str, int]:
    """The oid of each column's type; empty when there is no such table."""
    found = connection.execute(ddl.TABLE_COLUMNS, {"table": table}).fetchall()
    return {row["name"]: row["kind"] for row in found}


def _step(
    connection: Connection, table: str, statement: LiteralString, **parts: sql.Composable
) -> Step:
    return Step(table, compose(statement, table, **parts).as_string(connection))


@contextmanager
def _migration_lock(connection: Connection, clock: Clock) -> Iterator[None]:
    deadline = clock.monotonic() + LOCK_TIMEOUT.total_seconds()
    never = threading.Event()
    while not next(connection.execute(ddl.TRY_MIGRATION_LOCK, {"lock": LOCK}))["taken"]:
        if clock.monotonic() > deadline:
            raise StoreBusy("Another `embed-pipeline reaper init` is still running.")
        clock.wait(never, timedelta(milliseconds=100))
    try:
        yield
    finally:
        connection.execute(ddl.FORGET_LOCK_WAIT)
        connection.execute(ddl.RELEASE_MIGRATION_LOCK, {"lock": LOCK})
