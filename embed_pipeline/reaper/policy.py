"""What the reaper decides, given only values: how long a lease lasts, and what an end of it means.

The rules for rows that older workers left incomplete:

    no lease            it ends with the last heartbeat + 3 × the lease of the row's stage
    nor a heartbeat     nobody can say whether it is stuck: it is left alone, and counted
    no attempt count    0
    no max attempts     the setting
    no or other stage   the default lease
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from embed_pipeline.settings import ReaperSettings

SILENT_LEASES = 3
"""How many leases a worker that sets no lease may be silent."""
LADDER = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10))
FAIL_CODE = "timeout"
FAIL_REASON = "lease_expired"


class Stage(StrEnum):
    CLIP = "clip"
    ASR = "asr"
    BURNIN = "burnin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Back into the queue, but not before `after` has passed."""

    after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The end: a person has to look at it."""

    code: str = FAIL_CODE
    reason: str = FAIL_REASON


@dataclass(frozen=True, slots=True)
class Leave:
    """The lease is alive, or the row does not tell."""


Verdict = Requeue | Fail | Leave
LEAVE = Leave()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLeases:
    """How long a worker may stay silent, by stage."""

    clip: timedelta = timedelta(minutes=5)
    asr: timedelta = timedelta(minutes=15)
    burnin: timedelta = timedelta(minutes=15)
    default: timedelta = timedelta(minutes=15)

    def of(self, stage: str | None) -> timedelta:
        match stage:
            case Stage.CLIP:
                return self.clip
            case Stage.ASR:
                return self.asr
            case Stage.BURNIN:
                return self.burnin
            case _:
                return self.default

    @property
    def shortest(self) -> timedelta:
        return min(self.clip, self.asr, self.burnin, self.default)


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
        # Beyond 2**30 any ceiling has long been reached; the bound keeps the number small.
        return min(self.base * (1 << min(step, 30)), self.ceiling)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperPolicy:
    leases: StageLeases = field(default_factory=StageLeases)
    backoff: Backoff = field(default_factory=Backoff)
    max_attempts: int = 5

    def allowed(self, max_attempts: int | None) -> int:
        """A row's own maximum, or the setting."""
        return self.max_attempts if max_attempts is None else max_attempts


def policy_of(settings: ReaperSettings) -> ReaperPolicy:
    return ReaperPolicy(
        leases=StageLeases(
            clip=settings.lease_clip,
            asr=settings.lease_asr,
            burnin=settings.lease_burnin,
            default=settings.lease_default,
        ),
        backoff=Backoff(base=settings.backoff_base, ceiling=settings.backoff_ceiling or LADDER[-1]),
        max_attempts=settings.max_attempts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """What a row says about who works on it; anything may be missing."""

    stage: str | None = None
    attempt_count: int | None = None
    max_attempts: int | None = None
    lease_expires_at: datetime | None = None
    last_heartbeat_at: datetime | None = None


def ends_at(holding: LeaseState, leases: StageLeases) -> datetime | None:
    """When the right to work on the row ends; None when the row does not tell."""
    if holding.lease_expires_at is not None:
        return holding.lease_expires_at
    if holding.last_heartbeat_at is not None:
        return holding.last_heartbeat_at + SILENT_LEASES * leases.of(holding.stage)
    return None


def verdict_on(holding: LeaseState, *, now: datetime, policy: ReaperPolicy) -> Verdict:
    """`now` is the database's; a lease that ends this very moment is still alive."""
    end = ends_at(holding, policy.leases)
    if end is None or end >= now:
        return LEAVE
    return after_failure(holding.attempt_count, holding.max_attempts, policy=policy)


def after_failure(
    attempt_count: int | None,
    max_attempts: int | None,
    *,
    policy: ReaperPolicy,
    otherwise: Fail | None = None,
) -> Requeue | Fail:
    """Another attempt, or the end; `otherwise` is the end of a job that its worker gave up."""
    attempts = attempt_count or 0
    if attempts >= policy.allowed(max_attempts):
        return otherwise or Fail()
    return Requeue(after=policy.backoff.after(attempts))
