"""The job: embed one entity with one model, for one version of its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import NewType

from embed_pipeline.errors import ErrorCategory

JobId = NewType("JobId", str)
EntityUid = NewType("EntityUid", str)
JobKey = tuple[EntityUid, str, str]
"""Entity, model and version: at most one live job has it."""

LOWEST_PRIORITY, DEFAULT_PRIORITY, HIGHEST_PRIORITY = 0, 5, 9

RANKS = range(-HIGHEST_PRIORITY, -LOWEST_PRIORITY + 1)
"""The negative priority, by which indexes are ordered: the most urgent rank is the lowest."""

ENTITY_GONE = "entity_gone"
"""`fail_code` of a job whose entity was deleted: the only failure that a plain enqueue revives."""

LEASE_TIMEOUT = "timeout"
LEASE_EXPIRED = "lease_expired"
"""`fail_code` and `fail_reason` of a job that ended every worker that took it."""


class JobStatus(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class Again(IntEnum):
    """Whether the job was requested once more while a worker held it."""

    NO = 0
    YES = 1
    FORCED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """What a job remembers of an error: redacted and short enough to store."""

    category: ErrorCategory
    error_type: str
    message: str
    stack: str | None = None
    fail_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedJob:
    id: JobId
    entity_uid: EntityUid
    model: str
    version: str
    status: JobStatus
    priority: int
    created_at: datetime
    available_at: datetime
    processed_at: datetime | None = None
    lock_owner: str | None = None
    lock_until: datetime | None = None
    lease_token: str | None = None
    last_heartbeat_at: datetime | None = None
    attempts: int = 0
    max_attempts: int = 3
    recoveries: int = 0
    recovered_at: datetime | None = None
    strikes: int = 0
    force: bool = False
    again: Again = Again.NO
    error: str | None = None
    error_type: str | None = None
    error_category: ErrorCategory | None = None
    error_stack: str | None = None
    fail_code: str | None = None
    fail_reason: str | None = None

    @property
    def waits_since(self) -> datetime:
        """When it was asked for: created, or revived if nothing has failed since.

        A retry or a recovery moves `available_at`, so from the first error on only the creation
        is known.
        """
        untried = self.error is None and not self.attempts and not self.recoveries
        return self.available_at if untried else self.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One job asked for; `embedded` is what the caller read in the graph.

    `embedded` says whether the graph already holds this model's vector of this very version.
    """

    entity_uid: EntityUid
    model: str
    version: str
    priority: int = DEFAULT_PRIORITY
    force: bool = False
    embedded: bool = False

    def __post_init__(self) -> None:
        if not (self.entity_uid and self.model and self.version):
            raise ValueError("a job needs an entity, a model and a version")
        if not LOWEST_PRIORITY <= self.priority <= HIGHEST_PRIORITY:
            raise ValueError(
                f"priority must be from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}, "
                f"got {self.priority}"
            )

    @property
    def key(self) -> JobKey:
        return (self.entity_uid, self.model, self.version)


class Enqueued(StrEnum):
    """What an enqueue found, and so what it did."""

    CREATED = "created"
    QUEUED = "already queued"
    EMBEDDED = "already embedded"
    REVIVED = "revived"
    PARKED = "parked"

    @property
    def is_new_work(self) -> bool:
        return self in (Enqueued.CREATED, Enqueued.REVIVED)


@dataclass(frozen=True, slots=True)
class EnqueueReport:
    """An outcome per request, in the order they were asked."""

    outcomes: tuple[Enqueued, ...] = ()

    def count(self, *kinds: Enqueued) -> int:
        return sum(1 for outcome in self.outcomes if outcome in kinds)

    @property
    def new_jobs(self) -> int:
        return sum(outcome.is_new_work for outcome in self.outcomes)

    def counts(self) -> dict[str, int]:
        return {kind.value: n for kind, n in Counter(self.outcomes).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """Exact counts by status; costs a scan, so for people and reports, never for a sensor."""

    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0
    other: int = 0
    """In another status, which another program has written; no worker takes them."""

    @property
    def total(self) -> int:
        return self.pending + self.processing + self.completed + self.failed + self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Jobs that have not ended, each counted up to a limit; `pending` is of one model."""

    pending: int = 0
    processing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupReport:
    completed: int = 0
    failed: int = 0
    events: int = 0

    @property
    def jobs(self) -> int:
        return self.completed + self.failed

    def plus(self, other: CleanupReport) -> CleanupReport:
        return CleanupReport(
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            events=self.events + other.events,
        )


def provider_of(model: str) -> str:
    """The provider in `provider/name@dimensions`: the name of its breaker and its budget."""
    return model.partition("/")[0]


def in_order(ids: Iterable[JobId]) -> list[JobId]:
    """Ids without repeats, sorted: every store takes its locks in this order."""
    return sorted(set(ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened in the queue: one per call that changed something."""

    at: datetime
    kind: str
    owner: str | None = None
    reason: str | None = None
    job_ids: tuple[JobId, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
