"""What the job-store contracts are told in: a backend, jobs, leases and failures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from embed_pipeline.domain.job import EmbedJob, EntityUid, FailureRecord, JobId, JobRequest
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline_tests.clocks import FakeClock

MODEL = "mock/mock@64"
_tokens = itertools.count(1)


class QueueBackend(Protocol):
    """One empty queue, and what a contract may do to it from outside."""

    clock: FakeClock

    def open_store(self, *, policy: QueuePolicy | None = None) -> JobStore:
        """A new handle on the same queue, as another process would have it."""

    def open_limiter(self, *, provider: str, limit: RateLimit) -> RateLimiter: ...

    def alter(self, job_id: JobId, **fields: object) -> bool:
        """Set a job's stored fields directly, as another program might; times in ms, or None.

        False where the database refuses a value.
        """

    def counting_queries(self) -> AbstractContextManager[list[str]]:
        """The queries that any handle runs inside the block."""


def request(
    uid: str = "e1",
    *,
    version: str = "v1",
    model: str = MODEL,
    priority: int = 5,
    force: bool = False,
    embedded: bool = False,
) -> JobRequest:
    return JobRequest(
        entity_uid=EntityUid(uid),
        model=model,
        version=version,
        priority=priority,
        force=force,
        embedded=embedded,
    )


def add_jobs(store: JobStore, count: int = 1, *, priority: int = 5, prefix: str = "e") -> None:
    store.enqueue([request(f"{prefix}{n}", priority=priority) for n in range(count)])


def take(store: JobStore, limit: int = 10, *, owner: str = "worker-a", model: str = MODEL) -> Lease:
    return store.lease(owner=owner, model=model, limit=limit, token=new_token())


def new_token() -> str:
    return f"token-{next(_tokens)}"


def leased_job(store: JobStore, *, owner: str = "worker-a", uid: str = "e1") -> tuple[Lease, JobId]:
    store.enqueue([request(uid)])
    lease = take(store, 1, owner=owner)
    return lease, lease.job_ids[0]


def stored(store: JobStore, job_id: JobId) -> EmbedJob:
    job = store.get(job_id)
    assert job is not None
    return job


def failure(
    category: ErrorCategory = ErrorCategory.TRANSIENT,
    *,
    message: str = "connection reset",
    fail_code: str | None = None,
) -> FailureRecord:
    return FailureRecord(
        category=category,
        error_type="ProviderUnavailable",
        message=message,
        stack="Traceback (most recent call last): …",
        fail_code=fail_code,
    )


PERMANENT = failure(ErrorCategory.PERMANENT, message="input refused")
TRANSIENT = failure(ErrorCategory.TRANSIENT)
CRITICAL = failure(ErrorCategory.CRITICAL, message="key revoked")


def kinds(store: JobStore) -> Sequence[str]:
    """The kinds of all events, the oldest first."""
    return [event.kind for event in reversed(store.events.recent(limit=10_000))]
