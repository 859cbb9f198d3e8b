"""Ops for a person's hand in the launchpad: force, retry, pause, resume."""

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.metadata import Stopwatch, ids_metadata, switch_metadata
from embed_pipeline.defs.op import pipeline_op
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.usecases.entities import force
from embed_pipeline.usecases.queue import control
from embed_pipeline.worker.context import Services


class ForceConfig(dg.Config):
    entity_name: str | None = Field(
        default=None,
        description="Embed this one entity again, by its exact name; the limit is then ignored.",
    )
    key: str | None = Field(
        default=None,
        description="Embed this one entity again, by its key: where several have the same name.",
    )
    limit: int = Field(
        default=force.DEFAULT_LIMIT,
        description="Without name and key: queue at most so many entities that lack a vector "
        f"(1 to {force.MOST}).",
    )


class RetryConfig(dg.Config):
    category: ErrorCategory | None = Field(
        default=None, description="Only failures of this category; by default all."
    )
    limit: int = Field(default=1_000, description="At most so many, the oldest failures first.")


class PauseConfig(dg.Config):
    reason: str = Field(
        default="paused in Dagster", description="Why; it is shown to everybody who asks."
    )


class ResumeConfig(dg.Config):
    reason: str = Field(default="resumed in Dagster", description="What was mended, or why now.")


@pipeline_op("Queue one entity to be embedded again, or repair a number that lack a vector.")
def force_embedding(
    context: dg.OpExecutionContext, config: ForceConfig, services: dg.ResourceParam[Services]
) -> int:
    watch = Stopwatch()
    report = force.force_embedding(
        services,
        entity_name=config.entity_name,
        key=None if config.key is None else EntityUid(config.key),
        limit=config.limit,
    )
    context.log.info(report.message)
    context.add_output_metadata(
        {"result": report.message, "found": report.discovered, "queued": report.queued}
        | watch.speed(report.queued)
    )
    return report.queued


@pipeline_op("Give failed jobs a fresh start: attempts, recoveries and strikes back to 0.")
def retry_failed(
    context: dg.OpExecutionContext, config: RetryConfig, job_store: dg.ResourceParam[JobStore]
) -> int:
    watch = Stopwatch()
    retried = control.retry_failed(job_store, category=config.category, limit=config.limit)
    count = len(retried)
    context.add_output_metadata(
        {"pending again": count} | watch.speed(count) | ids_metadata(retried)
    )
    return len(retried)


@pipeline_op("Lease to nobody until the queue is resumed; what is held is finished.")
def pause_queue(
    context: dg.OpExecutionContext, config: PauseConfig, job_store: dg.ResourceParam[JobStore]
) -> str:
    switch = control.pause(job_store, reason=config.reason)
    context.add_output_metadata(switch_metadata(switch))
    return switch.state.value


@pipeline_op("Lease again after a pause or a halt.")
def resume_queue(
    context: dg.OpExecutionContext, config: ResumeConfig, job_store: dg.ResourceParam[JobStore]
) -> str:
    before, switch = control.resume(job_store, reason=config.reason)
    context.add_output_metadata(switch_metadata(switch, before=before))
    return switch.state.value
