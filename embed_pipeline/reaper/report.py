"""What a sweep did, or in a dry run would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from embed_pipeline.reaper.policy import Fail, Requeue, StuckJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """One stuck job and the decision on it; `overdue` is how long ago its lease ended."""

    table: str
    job: StuckJob
    attempts: int
    max_attempts: int
    overdue: timedelta
    decision: Requeue | Fail

    @property
    def was_failed(self) -> bool:
        return isinstance(self.decision, Fail)

    @property
    def event(self) -> dict[str, object]:
        """The value of `job_events.data`."""
        job = self.job
        details: dict[str, object] = {
            "job_id": job.job_id,
            "stage": job.stage,
            "attempt_count": self.attempts,
            "max_attempts": self.max_attempts,
            "locked_by": job.locked_by,
            "lease_token": job.lease_token,
            "lease_expires_at": job.lease_expires_at and job.lease_expires_at.isoformat(),
            "last_heartbeat_at": job.last_heartbeat_at and job.last_heartbeat_at.isoformat(),
            "overdue_sec": round(self.overdue.total_seconds(), 3),
        }
        match self.decision:
            case Requeue(after=after):
                kind = "reaper:requeued"
                details["backoff_sec"] = after.total_seconds()
            case Fail(code=code, reason=reason):
                kind = "reaper:failed(timeout)"
                details |= {"fail_code": code, "fail_reason": reason}
        return {"type": kind, "table": self.table, "details": details}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSweep:
    """The sweep of one table.

    `left_alone` rows have neither lease nor heartbeat; `refused` rows are protected by a rule of
    the table. `problem` is why the sweep ended early: what was done before stays done.
    """

    table: str
    reaped: tuple[Reaped, ...] = ()
    left_alone: int = 0
    refused: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    tables: tuple[TableSweep, ...]
    duration: timedelta
    dry_run: bool = False

    @property
    def reaped(self) -> tuple[Reaped, ...]:
        return tuple(reaped for table in self.tables for reaped in table.reaped)

    @property
    def requeues(self) -> int:
        return len(self.reaped) - self.failures

    @property
    def failures(self) -> int:
        return sum(reaped.was_failed for reaped in self.reaped)

    @property
    def left_alone(self) -> int:
        return sum(table.left_alone for table in self.tables)

    @property
    def refused(self) -> int:
        return sum(table.refused for table in self.tables)

    @property
    def lag(self) -> timedelta:
        """How overdue the oldest lease was: the reaper's own delay."""
        return max((reaped.overdue for reaped in self.reaped), default=timedelta(0))

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
        """The figures that add up from sweep to sweep."""
        return {
            "reaper_requeues": self.requeues,
            "reaper_failures": self.failures,
            "reaper_sweeps": 1,
            "reaper_scan_duration_ms": round(self.duration.total_seconds() * 1000),
        }
