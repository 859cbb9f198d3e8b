"""The sweep: finds jobs whose lease ended, and requeues or fails each.

Rows are locked, decided and changed, and their events written, in one transaction per batch, with
the database's clock. A row locked by another transaction (a worker's heartbeat or completion, or
a second reaper) is skipped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, LiteralString

from embed_pipeline import telemetry
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.reaper import statements as sql
from embed_pipeline.reaper.apply import carry_out
from embed_pipeline.reaper.connection import Connection, PostgresDatabase
from embed_pipeline.reaper.policy import ReaperPolicy, StuckJob, decide
from embed_pipeline.reaper.report import Reaped, SweepResult, TableSweep
from embed_pipeline.reaper.tables import TABLES, JobTable, refuse_zoneless

MOST_SHOWN = 10_000
"""Rows of a dry run, which a person reads."""
MOST_REFUSED = 1_000
"""Refused rows are tried one by one, in every sweep: a table that protects more is a problem."""


@dataclass(slots=True)
class _Progress:
    """The sweep of one table so far; it survives the error that ends the sweep."""

    table: JobTable
    reaped: list[Reaped] = field(default_factory=list)
    skipped: list[Any] = field(default_factory=list)
    """Keys not to be selected again by this sweep, which otherwise would never end."""
    refusals: list[Exception] = field(default_factory=list)
    left_alone: int = 0

    @property
    def enough_refused(self) -> bool:
        return len(self.refusals) >= MOST_REFUSED


class Reaper:
    """Two at once are safe: the second finds nothing to do."""

    def __init__(
        self,
        database: PostgresDatabase,
        *,
        policy: ReaperPolicy | None = None,
        batch_size: int = 500,
        tables: Sequence[JobTable] = TABLES,
        count: Callable[[Mapping[str, int]], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._database = database
        self._policy = policy or ReaperPolicy()
        self._batch_size = batch_size
        self._tables = tuple(tables)
        self._count = count
        self._clock = clock or SystemClock()

    def sweep(self, stop: threading.Event | None = None) -> SweepResult:
        """Sweep all tables; a broken one does not stop the others.

        Errors of the database are not raised: they are in `SweepResult.problems`. `stop` ends the
        sweep after the current batch.
        """
        stop = stop or threading.Event()
        result = self._over_tables(lambda progress: self._sweep_table(progress, stop))
        telemetry.emit("reaper.swept", count=len(result.reaped), metrics=result.metrics)
        if self._count is not None:
            try:
                self._count(result.counters)
            except Exception as error:  # the sweep is done; only its numbers are missing
                telemetry.emit("reaper.count_failed", error=error)
        return result

    def rehearse(self, *, most: int = MOST_SHOWN) -> SweepResult:
        """What a sweep would do now, without changing or locking anything.

        Reads at most `most` expired and `most` silent rows of a table.
        """
        return self._over_tables(
            lambda progress: self._rehearse_table(progress, most), dry_run=True
        )

    def close(self) -> None:
        self._database.close()

    def _over_tables(
        self, action: Callable[[_Progress], None], *, dry_run: bool = False
    ) -> SweepResult:
        started = self._clock.monotonic()
        swept = tuple(_guarded(table, action) for table in self._tables)
        duration = timedelta(seconds=self._clock.monotonic() - started)
        return SweepResult(tables=swept, duration=duration, dry_run=dry_run)

    def _sweep_table(self, progress: _Progress, stop: threading.Event) -> None:
        for find in (sql.LOCK_EXPIRED_ROWS, sql.LOCK_SILENT_ROWS):
            while not stop.is_set() and self._sweep_batch(progress, find):
                pass
        with self._database.transaction(read_only=True) as connection:
            _count_left_alone(progress, connection)
        if progress.left_alone:
            telemetry.emit(
                "reaper.rows_left_alone", table=progress.table.name, count=progress.left_alone
            )
        if progress.refusals and (progress.enough_refused or not progress.reaped):
            raise progress.refusals[0]  # no single row is to blame

    def _sweep_batch(self, progress: _Progress, find: LiteralString) -> bool:
        """True when there may be more."""
        table = progress.table
        with self._database.transaction() as connection:
            decisions = self._decisions(connection, progress, find, limit=self._batch_size)
            decided = [reaped for reaped in decisions.values() if reaped is not None]
            done, refusals = carry_out(connection, table, decided)
        progress.reaped += done
        progress.skipped += [key for key, reaped in decisions.items() if reaped is None]
        progress.skipped += refusals
        progress.refusals += refusals.values()
        _log(table, done, refusals)
        return len(decisions) == self._batch_size and not progress.enough_refused

    def _rehearse_table(self, progress: _Progress, most: int) -> None:
        with self._database.transaction(read_only=True) as connection:
            for find in (sql.EXPIRED_ROWS, sql.SILENT_ROWS):
                decisions = self._decisions(connection, progress, find, limit=most)
                progress.reaped += filter(None, decisions.values())
            _count_left_alone(progress, connection)

    def _decisions(
        self, connection: Connection, progress: _Progress, find: LiteralString, *, limit: int
    ) -> dict[Any, Reaped | None]:
        """By key; None for a row to be left alone."""
        parameters = {"limit": limit, "skip": progress.skipped}
        found = connection.execute(
            sql.compose(find, progress.table.name),
            parameters | self._policy.leases.silence_seconds(),
        )
        kinds = {column.name: column.type_code for column in found.description or ()}
        refuse_zoneless(progress.table.name, kinds)
        return {row["key"]: self._decide(progress.table, **row) for row in found}

    def _decide(self, table: JobTable, *, now: datetime, **columns: Any) -> Reaped | None:
        job = StuckJob(**columns)
        decision = decide(job, now=now, policy=self._policy)
        if decision is None:
            return None
        return Reaped(
            table=table.name,
            job=job,
            attempts=job.attempt_count or 0,
            max_attempts=self._policy.allowed(job.max_attempts),
            overdue=now - (job.lease_end(self._policy.leases) or now),
            decision=decision,
        )


def _guarded(table: JobTable, action: Callable[[_Progress], None]) -> TableSweep:
    progress, problem = _Progress(table), None
    try:
        action(progress)
    except Exception as error:  # the other table and the next sweep must go on
        problem = telemetry.redact(str(error)).strip() or type(error).__name__
        telemetry.emit("reaper.sweep_failed", table=table.name, error=error)
    return TableSweep(
        table=table.name,
        reaped=tuple(progress.reaped),
        left_alone=progress.left_alone,
        refused=len(progress.refusals),
        problem=problem,
    )


def _count_left_alone(progress: _Progress, connection: Connection) -> None:
    found = connection.execute(sql.compose(sql.COUNT_ROWS_LEFT_ALONE, progress.table.name))
    progress.left_alone = next(row["rows"] for row in found)


def _log(table: JobTable, done: Sequence[Reaped], refusals: Mapping[Any, Exception]) -> None:
    """Called after the commit: a transaction rolled back logs nothing."""
    for event, failed in (("reaper.jobs_requeued", False), ("reaper.jobs_failed", True)):
        jobs = [reaped.job for reaped in done if reaped.was_failed is failed]
        if jobs:
            telemetry.emit(
                event,
                table=table.name,
                count=len(jobs),
                job_ids=[job.job_id for job in jobs],
                workers=sorted({job.locked_by or "?" for job in jobs}),
            )
    if refusals:
        telemetry.emit(
            "reaper.rows_refused",
            table=table.name,
            count=len(refusals),
            job_ids=[str(key) for key in refusals],
            error=next(iter(refusals.values())),
        )
