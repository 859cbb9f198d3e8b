"""What becomes of a collection's jobs when it is removed: they are cancelled, none fails."""

from __future__ import annotations

from collections.abc import Iterator

from embed_pipeline.domain.job import EmbedJob, JobStatus
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.job_store import JobStore


def cancel_jobs_of(jobs: JobStore, prefix: str) -> int:
    """Cancel the pending jobs of all entities whose uid begins so; how many.

    Refused while a worker holds one: it would find its entity gone. Walks through the queue.
    """
    found = [job for job in _walk(jobs) if job.entity_uid.startswith(f"{prefix}/")]
    held = sum(job.status is JobStatus.PROCESSING for job in found)
    if held:
        raise RequestError(
            f"{held} of its jobs are being worked on: pause the queue, and repeat this when they "
            "have ended."
        )
    uids = dict.fromkeys(job.entity_uid for job in found if job.status is JobStatus.PENDING)
    return sum(len(jobs.cancel(entity_uid=uid)) for uid in uids)


def _walk(jobs: JobStore) -> Iterator[EmbedJob]:
    last: EmbedJob | None = None
    while page := jobs.history.walk(after=last.id if last else None):
        yield from page
        last = page[-1]
