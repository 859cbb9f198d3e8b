"""Cancel pending jobs: one entity's, or all of them, a page per transaction."""

from __future__ import annotations

from collections.abc import Callable

from embed_pipeline.domain.job import EntityUid, JobId
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit

PAGE = 1_000


def cancel_entity(jobs: JobStore, uid: EntityUid) -> tuple[JobId, ...]:
    """Every pending job of the entity, of whatever text or model."""
    cancelled = jobs.cancel(entity_uid=uid, limit=PAGE)
    emit("jobs.cancelled", count=len(cancelled), job_ids=cancelled)
    return cancelled


def cancel_pending(
    jobs: JobStore, *, limit: int | None = None, on_page: Callable[[int], None] = lambda count: None
) -> int:
    """Any pending jobs, or all; jobs that are queued meanwhile may be among them."""
    if limit is not None and limit < 1:
        raise RequestError(f"The limit must be at least 1, got {limit}.")
    count = 0
    while limit is None or count < limit:
        page = PAGE if limit is None else min(PAGE, limit - count)
        cancelled = jobs.cancel(limit=page)
        count += len(cancelled)
        on_page(count)
        if len(cancelled) < page:
            break
    emit("jobs.cancelled", count=count)
    return count
