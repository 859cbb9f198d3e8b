"""A person's hand on the queue: pause it, resume it, give failed jobs a fresh start."""

from __future__ import annotations

from embed_pipeline.domain.job import JobId
from embed_pipeline.domain.switch import Switch
from embed_pipeline.errors import ErrorCategory, RequestError
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit


def pause(jobs: JobStore, *, reason: str) -> Switch:
    """Nobody leases until `resume`; what is held is finished."""
    return jobs.switch.pause(_given(reason))


def resume(jobs: JobStore, *, reason: str) -> tuple[Switch, Switch]:
    """After a pause or a halt; the switch as it was, and as it is."""
    before = jobs.switch.read()
    return before, jobs.switch.resume(_given(reason))


def retry_failed(
    jobs: JobStore, *, category: ErrorCategory | None = None, limit: int = 10_000
) -> tuple[JobId, ...]:
    if limit < 1:
        raise RequestError(f"The limit must be at least 1, got {limit}.")
    retried = jobs.retry_failed(category=category, limit=limit)
    emit("jobs.retried", count=len(retried), category=category, job_ids=retried)
    return retried


def _given(reason: str) -> str:
    """Whoever finds the queue stopped wants to know why."""
    if not reason.strip():
        raise RequestError("A reason must not be empty.")
    return reason.strip()
