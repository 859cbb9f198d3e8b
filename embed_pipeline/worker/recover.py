"""Recovery: return the jobs of vanished workers to pending, and log whose they were."""

from __future__ import annotations

from embed_pipeline.domain.recovery import Recovery
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit


def recover_stale(jobs: JobStore) -> Recovery:
    """One pass; a pass that finds nothing is logged too, and so are workers that may be gone."""
    recovery = _logged(jobs.recover_stale())
    silence = jobs.silence()
    if silence.count:
        emit(
            "jobs.silent",
            count=silence.count,
            job_ids=silence.job_ids,
            workers=silence.workers,
            silent_for=silence.longest,
        )
    return recovery


def recover_owner(jobs: JobStore, owner: str) -> Recovery:
    """Recover the jobs of a run that is known to have ended, before their leases expire."""
    return _logged(jobs.recover_owner(owner))


def recover_before_work(jobs: JobStore) -> Recovery:
    """The pass at the start of a run. No error of it stops the run, not even a bug of ours."""
    try:
        return recover_stale(jobs)
    except Exception as error:
        emit("recovery.failed", error=error)
        return Recovery()


def _logged(recovery: Recovery) -> Recovery:
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
