"""What recovery does with a job whose worker is gone: a bounded number of new chances."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from embed_pipeline.domain.job import LEASE_EXPIRED, LEASE_TIMEOUT, EmbedJob, FailureRecord, JobId
from embed_pipeline.domain.transition import JobChanges, RetryPolicy, failed, pending_again
from embed_pipeline.errors import ErrorCategory

WORKER_KILLER = FailureRecord(
    category=ErrorCategory.PERMANENT,
    error_type="LeaseExpired",
    message="every worker that took this job ended without finishing it",
    fail_code=LEASE_TIMEOUT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPolicy:
    """The first recovery makes a job leasable at once, later ones wait up the ladder.

    At `max_recoveries` the job is failed, but only when others completed since its last one:
    when every run dies, the deploy is bad and not the job. `last_resort` ends that wait.
    """

    max_recoveries: int = 5
    last_resort: int = 15
    ladder: tuple[timedelta, ...] = (
        timedelta(0),
        timedelta(seconds=30),
        timedelta(minutes=2),
        timedelta(minutes=10),
    )

    def backoff(self, recoveries: int) -> timedelta:
        return self.ladder[min(recoveries, len(self.ladder)) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePolicy:
    """The numbers that a queue works by, made from the settings once."""

    lock_duration: timedelta = timedelta(minutes=5)
    heartbeat_interval: timedelta = timedelta(minutes=2)
    max_attempts: int = 3
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)


class Fate(StrEnum):
    PENDING = "pending"
    FAILED = "failed"
    WAITING = "waiting"
    """Exhausted, but no other job completed either: it waits, and health is CRITICAL."""


def fate_of(job: EmbedJob, *, policy: RecoveryPolicy, last_success_at: datetime | None) -> Fate:
    """The fate of a job at its next recovery; `job.recoveries` counts the earlier ones."""
    recoveries = job.recoveries + 1
    if recoveries < policy.max_recoveries:
        return Fate.PENDING
    if recoveries >= policy.last_resort or _others_completed_since(job, last_success_at):
        return Fate.FAILED
    return Fate.WAITING


def _others_completed_since(job: EmbedJob, last_success_at: datetime | None) -> bool:
    if last_success_at is None:
        return False
    return job.recovered_at is None or last_success_at >= job.recovered_at


def after_recovery(
    job: EmbedJob, fate: Fate, *, policy: RecoveryPolicy, now: datetime
) -> JobChanges:
    recoveries = job.recoveries + 1
    if fate is Fate.FAILED:
        end = failed(WORKER_KILLER, now=now, reason=LEASE_EXPIRED)
    else:
        end = pending_again(job, available_at=now + policy.backoff(recoveries))
    return {**end, "recoveries": recoveries, "recovered_at": now, "strikes": job.strikes + 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredJob:
    id: JobId
    entity_uid: str
    previous_owner: str | None
    recoveries: int
    fate: Fate
    silent_for: timedelta | None = None
    """How long ago its worker's last heartbeat was."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What one pass gave back or ended, with the previous owners."""

    jobs: tuple[RecoveredJob, ...] = ()

    @property
    def returned(self) -> tuple[RecoveredJob, ...]:
        return tuple(job for job in self.jobs if job.fate is not Fate.FAILED)

    @property
    def failed(self) -> tuple[RecoveredJob, ...]:
        return tuple(job for job in self.jobs if job.fate is Fate.FAILED)

    @property
    def previous_owners(self) -> tuple[str, ...]:
        return tuple(sorted({job.previous_owner for job in self.jobs if job.previous_owner}))
