"""The sweep: finds jobs whose lease ended, and gives each its verdict.

Rows are locked, judged and changed, and their events written, in one transaction per batch, with
the database's clock. A row that somebody else has locked (a worker that heartbeats or finishes
right now, or another reaper) is passed over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, LiteralString

from embed_pipeline import telemetry
from embed_pipeline.ports.clock import Clock, SystemClock
from embed_pipeline.ports.queue_control import Counters
from embed_pipeline.reaper import statements as sql
from embed_pipeline.reaper.connection import Connection, PostgresDatabase
from embed_pipeline.reaper.judging import carry_out, judge
from embed_pipeline.reaper.moments import refuse_zoneless
from embed_pipeline.reaper.policy import ReaperPolicy
from embed_pipeline.reaper.report import Reaped, SweepResult, TableSweep
from embed_pipeline.reaper.tables import (
    TABLES,
    JobTable,
    StuckRow,
    silence_parameters,
    stuck_row_of,
)

MOST_SHOWN = 10_000
"""What a dry run tells is for reading."""
MOST_REFUSED = 1_000
"""Each is tried alone, and again by every sweep: a table that protects more is a problem."""


@dataclass(slots=True)
class _Progress:
    """The sweep of one table so far; it survives the error that ends it."""

    table: JobTable
    reaped: list[Reaped] = field(default_factory=list)
    passed: list[Any] = field(default_factory=list)
    """Keys not to be selected again by this sweep, which would else never end."""
    refusals: list[Exception] = field(default_factory=list)
    left_alone: int = 0

    @property
    def enough_refused(self) -> bool:
        return len(self.refusals) >= MOST_REFUSED


class Reaper:
    """Two at once are safe; a second one only has nothing to do."""

    def __init__(
        self,
        database: PostgresDatabase,
        *,
        policy: ReaperPolicy | None = None,
        batch_size: int = 500,
        tables: Sequence[JobTable] = TABLES,
        counters: Counters | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._database = database
        self._policy = policy or ReaperPolicy()
        self._batch_size = batch_size
        self._tables = tuple(tables)
        self._counters = counters
        self._clock = clock or SystemClock()

    def sweep(self, stop: threading.Event | None = None) -> SweepResult:
        """All tables, each with its own failures: a broken one does not stop the others.

        Never raises for the database's sake: `SweepResult.problems` tells. `stop` ends it after
        the current batch.
        """
        stop = stop or threading.Event()
        result = self._over_tables(lambda progress: self._sweep_table(progress, stop))
        telemetry.emit("reaper.swept", count=len(result.reaped), metrics=result.metrics)
        self._count(result)
        return result

    def rehearse(self, *, most: int = MOST_SHOWN) -> SweepResult:
        """What a sweep would do now, without changing or locking anything.

        Looks at no more than `most` rows of either kind (expired, silent) in a table.
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
        swept = tuple(self._guarded(table, action) for table in self._tables)
        duration = timedelta(seconds=self._clock.monotonic() - started)
        return SweepResult(tables=swept, duration=duration, dry_run=dry_run)

    def _guarded(self, table: JobTable, action: Callable[[_Progress], None]) -> TableSweep:
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

    def _sweep_table(self, progress: _Progress, stop: threading.Event) -> None:
        for find in (sql.LOCK_EXPIRED_ROWS, sql.LOCK_SILENT_ROWS):
            while not stop.is_set() and self._sweep_batch(progress, find):
                pass
        with self._database.transaction(read_only=True) as connection:
            self._count_untold(progress, connection)
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
            rows = self._stuck_rows(connection, progress, find, limit=self._batch_size)
            verdicts = {row.key: judge(row, table, self._policy) for row in rows}
            judged = [reaped for reaped in verdicts.values() if reaped is not None]
            done, refusals = carry_out(connection, table, judged)
        progress.reaped += done
        progress.passed += [key for key, reaped in verdicts.items() if reaped is None]
        progress.passed += refusals
        progress.refusals += refusals.values()
        _tell(table, done, refusals)
        return len(rows) == self._batch_size and not progress.enough_refused

    def _rehearse_table(self, progress: _Progress, most: int) -> None:
        with self._database.transaction(read_only=True) as connection:
            for find in (sql.EXPIRED_ROWS, sql.SILENT_ROWS):
                for row in self._stuck_rows(connection, progress, find, limit=most):
                    reaped = judge(row, progress.table, self._policy)
                    progress.reaped += [reaped] if reaped else []
            self._count_untold(progress, connection)

    def _stuck_rows(
        self, connection: Connection, progress: _Progress, find: LiteralString, *, limit: int
    ) -> list[StuckRow]:
        parameters = {
            "limit": limit,
            "skip": progress.passed,
            **silence_parameters(self._policy.leases),
        }
        found = connection.execute(sql.compose(find, progress.table.name), parameters)
        kinds = {column.name: column.type_code for column in found.description or ()}
        refuse_zoneless(progress.table.name, kinds)
        return [stuck_row_of(row) for row in found]

    def _count_untold(self, progress: _Progress, connection: Connection) -> None:
        found = connection.execute(sql.compose(sql.COUNT_UNTOLD_ROWS, progress.table.name))
        progress.left_alone = next(row["rows"] for row in found)

    def _count(self, result: SweepResult) -> None:
        if self._counters is None:
            return
        try:
            self._counters.add(result.counters)
        except Exception as error:  # the sweep is done; only its numbers are missing
            telemetry.emit("reaper.count_failed", error=error)


def _tell(table: JobTable, done: Sequence[Reaped], refusals: Mapping[Any, Exception]) -> None:
    """After the commit: what was rolled back never happened."""
    for event, jobs in (
        ("reaper.jobs_requeued", [job for job in done if not job.was_failed]),
        ("reaper.jobs_failed", [job for job in done if job.was_failed]),
    ):
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
