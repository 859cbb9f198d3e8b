"""The statements on jobs that a backend fills: verbs that a database does best in one go.

A verb of a holder changes only jobs that are processing under the lease's owner and token, and
returns the ids that it changed; all others were lost. Lists of ids come sorted and without
repeats, and jobs are locked in that order. Times that a verb grants (a lease's end, a due time)
are counted from the real time behind its locks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from embed_pipeline.domain.job import (
    EmbedJob,
    EntityUid,
    FailureRecord,
    JobId,
    JobKey,
    JobRequest,
    JobStatus,
    Live,
    QueueStatus,
)
from embed_pipeline.domain.lease import Head, Lease, Tier
from embed_pipeline.domain.transition import JobChanges, KnownJob
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.stores.encoding import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """What a lease decides by, read behind the lease lock."""

    documents: Mapping[str, Document]
    held: Sequence[EmbedJob]
    """The jobs of an earlier call with this owner and token, whose answer was lost."""
    heads: Sequence[Head]
    """The first due job of each rank and tier."""


class JobReader(Protocol):
    """Jobs in a transaction that only reads."""

    @abstractmethod
    def get(self, job_id: JobId) -> EmbedJob | None: ...

    @abstractmethod
    def next_due(self, *, model: str) -> datetime | None:
        """The earliest `available_at` of the pending jobs, by a seek per rank and tier."""

    @abstractmethod
    def has_stale(self) -> bool: ...

    @abstractmethod
    def silent(self, *, beaten_before: datetime, lock_until: datetime) -> list[EmbedJob]:
        """Processing jobs with an older heartbeat, whose lease ends between now and this time."""

    @abstractmethod
    def live_owners(self) -> frozenset[str]:
        """Who holds a lease that has not ended."""

    @abstractmethod
    def pending_models(self) -> tuple[str, ...]:
        """By name; from model to model along the index."""

    @abstractmethod
    def count_by_status(self) -> QueueStatus: ...

    @abstractmethod
    def count_live(self, *, model: str, limit: int) -> Live:
        """Pending jobs of the model and processing jobs of any, each counted up to the limit."""

    @abstractmethod
    def failed(self, *, category: ErrorCategory | None, limit: int) -> list[EmbedJob]:
        """The latest first."""

    @abstractmethod
    def ended(
        self, *, status: JobStatus | None, after: tuple[int, str], limit: int
    ) -> list[EmbedJob]:
        """Completed and failed jobs behind this end (in ms) and id, in the order of both."""

    @abstractmethod
    def parked(self, *, limit: int) -> list[EmbedJob]:
        """Failed jobs but those of deleted entities, the latest first."""

    @abstractmethod
    def count_parked(self, *, limit: int) -> int: ...

    @abstractmethod
    def walk(self, *, after: JobId, limit: int) -> list[EmbedJob]:
        """Jobs behind this id, by id."""

    @abstractmethod
    def count_ahead(self, job: EmbedJob, *, limit: int) -> int:
        """Pending jobs of its model that may be leased before this one, up to the limit."""

    @abstractmethod
    def of_entity(self, uid: EntityUid, *, limit: int) -> list[EmbedJob]:
        """The newest first."""


class JobTable(JobReader, Protocol):
    """Jobs in a transaction that writes."""

    @abstractmethod
    def lock_by_keys(self, keys: Sequence[JobKey]) -> Mapping[JobKey, KnownJob]:
        """The jobs of these keys, locked. One that no statement can name has the id ''."""

    @abstractmethod
    def insert(
        self, requests: Mapping[JobId, JobRequest], *, max_attempts: int
    ) -> Collection[JobId]:
        """Create pending jobs, due now, in this order; returns which were created.

        A key that another transaction creates meanwhile: leave its job out, or run the whole
        transaction again. Where transactions wait for each other's keys, insert sorted by key.
        """

    @abstractmethod
    def save(self, changes: Mapping[JobId, JobChanges]) -> None:
        """Change jobs that this transaction has locked."""

    @abstractmethod
    def view_for_lease(
        self, *, owner: str, token: str, model: str, documents: Sequence[str]
    ) -> LeaseView:
        """Wait for the lease lock, where there is one, then read."""

    @abstractmethod
    def take(
        self, lease: Lease, *, model: str, tier: Tier, ranks: Sequence[int], limit: int
    ) -> list[EmbedJob]:
        """Lease due jobs of this tier, rank by rank, the oldest first, until the limit."""

    @abstractmethod
    def extend(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]: ...

    @abstractmethod
    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]: ...

    @abstractmethod
    def defer(
        self,
        lease: Lease,
        job_ids: Sequence[JobId],
        *,
        error: FailureRecord,
        strike: bool,
        delay: timedelta,
    ) -> list[JobId]: ...

    @abstractmethod
    def complete(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        """Those that were not asked for again meanwhile."""

    @abstractmethod
    def complete_and_repeat(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        """The others: done, and pending again with a fresh start."""

    @abstractmethod
    def completed_before(self, lease: Lease, job_ids: Sequence[JobId]) -> list[JobId]:
        """Those that an earlier call with this token has completed."""

    @abstractmethod
    def lock_held(self, lease: Lease, job_ids: Sequence[JobId]) -> list[EmbedJob]: ...

    @abstractmethod
    def lock_stale(self, *, limit: int) -> list[EmbedJob]:
        """Processing jobs whose lease has ended or has no end, checked again behind the lock."""

    @abstractmethod
    def lock_owned(self, owner: str, *, limit: int) -> list[EmbedJob]:
        """Processing jobs of this owner."""

    @abstractmethod
    def retry_failed(self, *, category: ErrorCategory | None, limit: int) -> list[JobId]:
        """Failed jobs, the oldest first, pending again with a fresh start."""

    @abstractmethod
    def cancel(self, *, entity_uid: EntityUid | None, limit: int) -> list[JobId]:
        """Delete pending jobs; behind the lease lock, so that no lease meets a job that goes."""

    @abstractmethod
    def delete_of_entity(self, entity_uid: EntityUid) -> list[JobId]:
        """Delete the jobs of an entity, whatever their status; behind the lease lock."""

    @abstractmethod
    def delete_ended(self, *, before: datetime, limit: int) -> list[JobStatus]:
        """Delete jobs that ended before this time; the status of each."""

    @abstractmethod
    def delete_events(self, *, before: datetime, limit: int) -> int: ...
