"""What the reaper decides from values alone: how long a lease lasts, and what follows its end.

Rules for rows that older workers left incomplete:

    no lease            the lease ends 3 × the lease of the row's stage after the last heartbeat
    nor a heartbeat     the row is left alone and counted: it may or may not be stuck
    no attempt count    0
    no max attempts     the setting
    no or other stage   the default lease
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

SILENT_LEASES = 3
"""How many leases a worker that sets no lease may be silent."""
LADDER = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10))


class Stage(StrEnum):
    CLIP = "clip"
    ASR = "asr"
    BURNIN = "burnin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Back into the queue, available when `after` has passed."""

    after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Final, until a person changes the row."""

    code: str = "timeout"
    reason: str = "lease_expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLeases:
    """How long a worker may stay silent, by stage."""

    clip: timedelta = timedelta(minutes=5)
    asr: timedelta = timedelta(minutes=15)
    burnin: timedelta = timedelta(minutes=15)
    default: timedelta = timedelta(minutes=15)

    def of(self, stage: str | None) -> timedelta:
        by_stage = {Stage.CLIP: self.clip, Stage.ASR: self.asr, Stage.BURNIN: self.burnin}
        return next((lease for name, lease in by_stage.items() if name == stage), self.default)

    def silence_seconds(self) -> dict[str, float]:
        """The longest allowed silence, as parameters of `statements.SILENT_ROWS`."""
        leases = {name: getattr(self, name) for name in ("clip", "asr", "burnin", "default")}
        leases["shortest"] = min(leases.values())
        return {name: (SILENT_LEASES * lease).total_seconds() for name, lease in leases.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """A ladder whose last step repeats; with a base, doubling up to the ceiling instead."""

    ladder: tuple[timedelta, ...] = LADDER
    base: timedelta | None = None
    ceiling: timedelta = LADDER[-1]

    def after(self, attempt: int) -> timedelta:
        """The wait after pick-up number `attempt`; rows that never counted take the first step."""
        step = max(attempt, 1) - 1
        if self.base is None:
            return self.ladder[min(step, len(self.ladder) - 1)]
        # Any ceiling is reached long before 2**30; the bound keeps the number small.
        return min(self.base * (1 << min(step, 30)), self.ceiling)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperPolicy:
    leases: StageLeases = field(default_factory=StageLeases)
    backoff: Backoff = field(default_factory=Backoff)
    max_attempts: int = 5

    def allowed(self, max_attempts: int | None) -> int:
        """A row's own maximum, or the setting."""
        return self.max_attempts if max_attempts is None else max_attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckJob:
    """A row that may be stuck, as the sweep read it; old workers may have left any column NULL.

    `key` is the id in the table's own type, `job_id` the same as text.
    """

    key: Any = None
    job_id: str = ""
    stage: str | None = None
    attempt_count: int | None = None
    max_attempts: int | None = None
    locked_by: str | None = None
    lease_token: str | None = None
    lease_expires_at: datetime | None = None
    last_heartbeat_at: datetime | None = None

    def lease_end(self, leases: StageLeases) -> datetime | None:
        """None when the row has neither lease nor heartbeat."""
        if self.lease_expires_at is not None:
            return self.lease_expires_at
        if self.last_heartbeat_at is not None:
            return self.last_heartbeat_at + SILENT_LEASES * leases.of(self.stage)
        return None


def decide(job: StuckJob, *, now: datetime, policy: ReaperPolicy) -> Requeue | Fail | None:
    """None leaves the row alone. A lease that ends exactly `now`, the database's, is alive."""
    end = job.lease_end(policy.leases)
    if end is None or end >= now:
        return None
    return after_failure(job.attempt_count, job.max_attempts, policy=policy)


def after_failure(
    attempt_count: int | None,
    max_attempts: int | None,
    *,
    policy: ReaperPolicy,
    final: Fail | None = None,
) -> Requeue | Fail:
    """Another attempt, or `final` (by default a timeout) when none is left."""
    attempts = attempt_count or 0
    if attempts >= policy.allowed(max_attempts):
        return final or Fail()
    return Requeue(after=policy.backoff.after(attempts))
