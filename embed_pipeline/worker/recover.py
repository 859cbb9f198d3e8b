"""Recovery: give the jobs of vanished workers back, and tell whose they were."""

from __future__ import annotations

from embed_pipeline.domain.recovery import Recovery
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit


def recover_stale(jobs: JobStore) -> Recovery:
    """One pass; a pass that finds nothing is logged too."""
    return _told(jobs.recover_stale())


def recover_owner(jobs: JobStore, owner: str) -> Recovery:
    """For a run that is known to have ended: its jobs need not wait for their leases to end."""
    return _told(jobs.recover_owner(owner))


def recover_before_work(jobs: JobStore) -> Recovery:
    """The pass at the start of a run: when it fails, the run goes on without it."""
    try:
        return recover_stale(jobs)
    except EmbedPipelineError as error:
        emit("recovery.failed", error=error)
        return Recovery()


def _told(recovery: Recovery) -> Recovery:
    emit(
        "jobs.recovered",
        count=len(recovery.returned),
        failed=len(recovery.failed),
        job_ids=[job.id for job in recovery.jobs],
        previous_owners=recovery.previous_owners,
    )
    for owner in recovery.previous_owners:
        silences = [
            job.silent_for
            for job in recovery.jobs
            if job.previous_owner == owner and job.silent_for
        ]
        emit("heartbeat.missed", worker_id=owner, silent_for=min(silences, default=None))
    return recovery
