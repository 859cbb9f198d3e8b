"""The lease: a time-bounded, owned, renewable right to work on jobs. Losing it is normal.

A job that repeatedly crashes its worker is isolated: it is leased in ever smaller batches.
`strikes` counts the crashes and failed shared requests that a job was part of. So the job that
causes them is finally alone and fails alone, without the others that happened to be beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import NamedTuple

from embed_pipeline.domain.job import EmbedJob, JobId


class RefusalReason(StrEnum):
    HALTED = "halted"
    PAUSED = "paused"
    BREAKER_OPEN = "breaker open"
    BUDGET_SPENT = "budget spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why nothing is leased now, and when it may be again (None: when a person says so)."""

    reason: RefusalReason
    detail: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A value that is passed between ops, with all that a later call has to prove.

    `token` is new for every lease call, so that a worker which leases its own expired job again
    cannot be mistaken for its former self. `breaker_seen` is the generation of the provider's
    breaker at the time of leasing.
    """

    owner: str
    token: str
    duration: timedelta
    jobs: tuple[EmbedJob, ...] = ()
    probe: bool = False
    breaker_seen: int = 0
    refusal: Refusal | None = None

    @property
    def job_ids(self) -> tuple[JobId, ...]:
        return tuple(job.id for job in self.jobs)


def beat_interval(interval: timedelta, *, lock: timedelta) -> timedelta:
    """How often a worker extends its leases: as asked, but at least twice per lock."""
    return min(interval, lock * 0.4)


def silent_after(interval: timedelta, *, lock: timedelta) -> timedelta:
    """Without a heartbeat for so long a worker may be gone; before its lease has expired."""
    return min(3 * beat_interval(interval, lock=lock), lock * 0.8)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseResult:
    """What became of the jobs named in a call: done as asked, or no longer the caller's."""

    done: tuple[JobId, ...] = ()
    lost: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailReport:
    """What became of jobs that failed: another attempt later, or the end."""

    retried: tuple[JobId, ...] = ()
    failed: tuple[JobId, ...] = ()
    lost: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLease:
    """Who may do a named task now, and until when; owned by no one before the first."""

    owner: str | None = None
    until: datetime | None = None

    def is_free(self, now: datetime) -> bool:
        """`until` = now is not yet over, as with jobs."""
        return self.owner is None or self.until is None or self.until < now


# -- isolation ------------------------------------------------------------------------------


class Tier(IntEnum):
    NORMAL = 0
    SMALL = 1
    SOLO = 2


SMALL_FROM_STRIKES, SOLO_FROM_STRIKES = 2, 4
SMALL_BATCH = 16


def tier_of(strikes: int) -> Tier:
    if strikes >= SOLO_FROM_STRIKES:
        return Tier.SOLO
    return Tier.SMALL if strikes >= SMALL_FROM_STRIKES else Tier.NORMAL


class Head(NamedTuple):
    """The first due job of a rank and a tier; `due` is its time in milliseconds."""

    rank: int
    tier: int
    due: int


def lease_order(head: Head, *, probing: bool) -> tuple[int, int, int]:
    """What the heads of the queue are sorted by; the first one decides what a lease takes.

    A probe goes to the job that has waited longest, whatever its priority: a failed one is put
    behind the others, and would otherwise be the first again as soon as it is due.
    """
    rank, tier, due = head
    return (due, rank, tier) if probing else (rank, due, tier)


def batch_limit(tier: Tier, limit: int) -> int:
    """How many jobs a lease of this tier may hold."""
    match tier:
        case Tier.NORMAL:
            return limit
        case Tier.SMALL:
            return min(limit, SMALL_BATCH)
        case Tier.SOLO:
            return min(limit, 1)
