"""The queue: a lease-based job store that never loses, sticks or doubles a job.

All lease decisions use the database's clock. Every call that changes jobs appends one event in
the same transaction; a call with an empty list runs no query. A call repeated after a lost
acknowledgement leaves the same state as one call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from embed_pipeline.domain.control import ControlState
from embed_pipeline.domain.health import Silence
from embed_pipeline.domain.job import (
    CleanupReport,
    EmbedJob,
    EnqueueReport,
    EntityUid,
    FailureRecord,
    JobId,
    JobRequest,
    Live,
    QueueStatus,
)
from embed_pipeline.domain.lease import FailReport, Lease, LeaseResult
from embed_pipeline.domain.recovery import Recovery
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_history import JobHistory
from embed_pipeline.ports.queue_control import (
    Breakers,
    Counters,
    Events,
    Health,
    NamedLeases,
    SwitchBoard,
)


class JobStore(Protocol):
    @property
    @abstractmethod
    def switch(self) -> SwitchBoard: ...

    @property
    @abstractmethod
    def breakers(self) -> Breakers: ...

    @property
    @abstractmethod
    def health(self) -> Health: ...

    @property
    @abstractmethod
    def events(self) -> Events: ...

    @property
    @abstractmethod
    def counters(self) -> Counters: ...

    @property
    @abstractmethod
    def named_leases(self) -> NamedLeases: ...

    @property
    @abstractmethod
    def history(self) -> JobHistory: ...

    @abstractmethod
    def control_state(self, *, provider: str) -> ControlState:
        """The switch and the breakers of this provider and of the graph, in one transaction."""

    @abstractmethod
    def enqueue(self, requests: Sequence[JobRequest]) -> EnqueueReport:
        """At most one live job per key; reports for each request what was found."""

    @abstractmethod
    def lease(self, *, owner: str, model: str, limit: int, token: str) -> Lease:
        """Take due jobs of this model, highest priority first, then oldest.

        Refuses while halted, paused or while the breaker of the model's provider or of the graph
        is open; after a provider's pause one caller gets one job as the probe. A known `token`
        returns the jobs that it leased before, whatever the switch says.
        """

    @abstractmethod
    def heartbeat(self, lease: Lease, job_ids: Sequence[JobId]) -> LeaseResult:
        """Move the end of the lease forward by its whole duration."""

    @abstractmethod
    def release(self, lease: Lease, job_ids: Sequence[JobId]) -> int:
        """Give unstarted jobs back, due at once; counts the caller's and ignores all others."""

    @abstractmethod
    def defer(
        self,
        lease: Lease,
        job_ids: Sequence[JobId],
        *,
        error: FailureRecord,
        strike: bool = False,
        delay: timedelta = timedelta(0),
    ) -> LeaseResult:
        """Give started jobs back without charging an attempt; the error is recorded.

        `strike` isolates them: they are leased in smaller batches (see `domain.lease`).
        """

    @abstractmethod
    def complete(
        self, lease: Lease, job_ids: Sequence[JobId], *, reason: str | None = None
    ) -> LeaseResult:
        """End jobs successfully; one that was requested again meanwhile goes back to pending."""

    @abstractmethod
    def fail(
        self,
        lease: Lease,
        failures: Mapping[JobId, FailureRecord],
        *,
        is_counted: bool = False,
    ) -> FailReport:
        """Charge an attempt: back to pending after a backoff, or failed for good.

        `is_counted`: health has counted these errors already, through the breaker that they opened.
        A CRITICAL error is no job's attempt: such jobs are deferred, and this call refuses them.
        """

    @abstractmethod
    def recover_stale(self, *, limit: int = 10_000) -> Recovery:
        """Return jobs whose lease has ended to pending; attempts are kept.

        The check and the write are one step: a lease extended meanwhile is never taken.
        """

    @abstractmethod
    def recover_owner(self, owner: str) -> Recovery:
        """The same for all jobs of a run that is known to have ended, expired or not."""

    @abstractmethod
    def retry_failed(
        self, *, category: ErrorCategory | None = None, limit: int = 10_000
    ) -> tuple[JobId, ...]:
        """Give failed jobs, the oldest first, a fresh start: attempts, recoveries, strikes at 0."""

    @abstractmethod
    def cancel(
        self, *, entity_uid: EntityUid | None = None, limit: int = 1_000
    ) -> tuple[JobId, ...]:
        """Delete pending jobs, all of one entity's or any; returns which.

        A job that a worker holds is never touched. Nothing remembers a cancelled job: discovery
        finds its entity again and makes a new one.
        """

    @abstractmethod
    def erase(self, entity_uid: EntityUid) -> tuple[JobId, ...]:
        """Delete every job of an entity with its error texts, also one that a worker holds.

        That worker loses its lease. An event is appended, also if there is no job; it names no
        entity.
        """

    @abstractmethod
    def cleanup(self, *, older_than: timedelta) -> CleanupReport:
        """Delete completed and failed jobs, and events, that are older."""

    @abstractmethod
    def get(self, job_id: JobId) -> EmbedJob | None: ...

    @abstractmethod
    def failed_jobs(
        self, *, category: ErrorCategory | None = None, limit: int = 100
    ) -> tuple[EmbedJob, ...]:
        """The latest failures first."""

    @abstractmethod
    def now(self) -> datetime:
        """The database's clock, by which all of this is decided."""

    @abstractmethod
    def next_due(self, *, model: str) -> datetime | None:
        """When the first pending job of the model is due (maybe long ago); None without one.

        Costs a few index seeks, whatever the size of the queue.
        """

    @abstractmethod
    def has_stale(self) -> bool:
        """Whether recovery would find anything; costs an index seek."""

    @abstractmethod
    def silence(self) -> Silence:
        """Processing jobs whose worker may be gone, though their lease still holds.

        By the index of leases' ends, so the cost is that of the processing jobs found.
        """

    @abstractmethod
    def live_owners(self) -> frozenset[str]:
        """Who holds a lease that has not ended."""

    @abstractmethod
    def pending_models(self) -> tuple[str, ...]:
        """The models that pending jobs are for, by name; costs a seek for each."""

    @abstractmethod
    def count_live(self, *, model: str, limit: int) -> Live:
        """Pending jobs of the model and processing jobs of any, each counted up to the limit.

        Counted, not kept: a program that changes jobs itself cannot make it wrong. The cost is
        bounded by the limit.
        """

    @abstractmethod
    def get_queue_status(self) -> QueueStatus: ...

    @abstractmethod
    def close(self) -> None: ...
