"""`cleanup_ttl_job`: deletes ended jobs of the queue past their retention."""

from datetime import timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import RETRY_TWICE, Metadata, Stopwatch, pipeline_op
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.queue import control
from embed_pipeline.worker.context import RunLimits


class CleanupConfig(dg.Config):
    older_than_days: int | None = Field(
        default=None,
        ge=0,
        le=36_500,
        description="Delete jobs that ended before; by default EMBED_JOB_RETENTION_DAYS.",
    )


@pipeline_op("Delete completed and failed jobs past their retention.", retry_policy=RETRY_TWICE)
def cleanup_ttl(
    context: dg.OpExecutionContext,
    config: CleanupConfig,
    job_store: dg.ResourceParam[JobStore],
    run_limits: dg.ResourceParam[RunLimits],
) -> int:
    days = config.older_than_days
    older_than = run_limits.retention if days is None else timedelta(days=days)
    watch = Stopwatch()
    report = control.cleanup_ttl(job_store, older_than=older_than)
    metadata: Metadata = {
        "completed deleted": report.completed,
        "failed deleted": report.failed,
        "events deleted": report.events,
        "older than (days)": older_than / timedelta(days=1),
    }
    context.add_output_metadata(metadata | watch.speed(report.jobs))
    return report.jobs
