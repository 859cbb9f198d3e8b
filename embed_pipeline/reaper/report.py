"""What a sweep did, or in a dry run would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from embed_pipeline.reaper.policy import Fail, Requeue


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """One stuck job as it was found, and its verdict; `overdue` is how long ago its lease ended."""

    table: str
    key: Any
    stage: str | None
    attempt_count: int
    max_attempts: int
    locked_by: str | None
    lease_token: str | None
    lease_expires_at: datetime | None
    last_heartbeat_at: datetime | None
    overdue: timedelta
    verdict: Requeue | Fail

    @property
    def job_id(self) -> str:
        return str(self.key)

    @property
    def was_failed(self) -> bool:
        return isinstance(self.verdict, Fail)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSweep:
    """`left_alone` rows tell neither lease nor heartbeat; `refused` ones the table would not let
    us change. `problem` is why the sweep of this table ended early: what was done before stays.
    """

    table: str
    reaped: tuple[Reaped, ...] = ()
    left_alone: int = 0
    refused: int = 0
    problem: str | None = None

    @property
    def requeues(self) -> int:
        return len(self.reaped) - self.failures

    @property
    def failures(self) -> int:
        return sum(job.was_failed for job in self.reaped)

    @property
    def lag(self) -> timedelta:
        return max((job.overdue for job in self.reaped), default=timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    tables: tuple[TableSweep, ...]
    duration: timedelta
    dry_run: bool = False

    @property
    def reaped(self) -> tuple[Reaped, ...]:
        return tuple(job for table in self.tables for job in table.reaped)

    @property
    def requeues(self) -> int:
        return sum(table.requeues for table in self.tables)

    @property
    def failures(self) -> int:
        return sum(table.failures for table in self.tables)

    @property
    def left_alone(self) -> int:
        return sum(table.left_alone for table in self.tables)

    @property
    def refused(self) -> int:
        return sum(table.refused for table in self.tables)

    @property
    def lag(self) -> timedelta:
        """How overdue the oldest lease was: the reaper's own delay."""
        return max((table.lag for table in self.tables), default=timedelta(0))

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(f"{table.table}: {table.problem}" for table in self.tables if table.problem)

    @property
    def metrics(self) -> Mapping[str, float]:
        return {
            "reaper.requeues": self.requeues,
            "reaper.failures": self.failures,
            "reaper.scan_duration_ms": round(self.duration.total_seconds() * 1000, 1),
            "reaper.lag_ms": round(self.lag.total_seconds() * 1000, 1),
            "reaper.left_alone": self.left_alone,
            "reaper.refused": self.refused,
        }

    @property
    def counters(self) -> Mapping[str, int]:
        """What of it adds up from sweep to sweep."""
        return {
            "reaper_requeues": self.requeues,
            "reaper_failures": self.failures,
            "reaper_sweeps": 1,
            "reaper_scan_duration_ms": round(self.duration.total_seconds() * 1000),
        }
