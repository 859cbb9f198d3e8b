"""Jobs that people launch by hand: force, retry, pause, resume."""

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import Metadata, Stopwatch, pipeline_op, table
from embed_pipeline.defs.pipeline import Pipeline
from embed_pipeline.domain.control import Switch
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
        description="Embed this one entity again, by its key: for names that are not unique.",
    )
    limit: int = Field(
        default=force.DEFAULT_LIMIT,
        description="Without name and key: queue at most this many entities that lack a vector "
        f"(1 to {force.MOST}).",
    )


class RetryConfig(dg.Config):
    category: ErrorCategory | None = Field(
        default=None, description="Only failures of this category; by default all."
    )
    limit: int = Field(default=1_000, description="At most this many, the oldest failures first.")


class PauseConfig(dg.Config):
    reason: str = Field(
        default="paused in Dagster", description="Why; shown wherever the queue's state is shown."
    )


class ResumeConfig(dg.Config):
    reason: str = Field(
        default="resumed in Dagster", description="What was fixed, or why work may go on."
    )


@pipeline_op("Queue one entity again, by name or key, or a number of entities that lack a vector.")
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


@pipeline_op("Make failed jobs pending again, with attempts, recoveries and strikes reset to 0.")
def retry_failed(
    context: dg.OpExecutionContext, config: RetryConfig, job_store: dg.ResourceParam[JobStore]
) -> int:
    watch = Stopwatch()
    retried = control.retry_failed(job_store, category=config.category, limit=config.limit)
    metadata: Metadata = {"pending again": len(retried)} | watch.speed(len(retried))
    if retried:
        metadata["jobs"] = table([{"job": job_id} for job_id in retried])
    context.add_output_metadata(metadata)
    return len(retried)


@pipeline_op("Stop leasing new jobs until the queue is resumed. Leased jobs are completed.")
def pause_queue(
    context: dg.OpExecutionContext, config: PauseConfig, job_store: dg.ResourceParam[JobStore]
) -> str:
    switch = control.pause(job_store, reason=config.reason)
    context.add_output_metadata(_metadata_of(switch))
    return switch.state.value


@pipeline_op("Lease jobs again after a pause or a halt.")
def resume_queue(
    context: dg.OpExecutionContext, config: ResumeConfig, job_store: dg.ResourceParam[JobStore]
) -> str:
    before, switch = control.resume(job_store, reason=config.reason)
    metadata = _metadata_of(switch) | {"state before": before.state.value}
    if before.reason and not before.is_running:
        metadata["reason before"] = before.reason
    context.add_output_metadata(metadata)
    return switch.state.value


def _metadata_of(switch: Switch) -> Metadata:
    metadata: Metadata = {"state": switch.state.value}
    if switch.reason:
        metadata["reason"] = switch.reason
    if switch.since:
        metadata["since"] = switch.since.isoformat(timespec="seconds")
    return metadata


def control_definitions(pipeline: Pipeline) -> dg.Definitions:
    return dg.Definitions(
        jobs=[
            pipeline.job(force_embedding, "force_embedding_job", lane="control", max_runtime=600),
            pipeline.job(retry_failed, "retry_failed_job", lane="control", max_runtime=600),
            pipeline.job(pause_queue, "pause_job", lane="control", max_runtime=300),
            pipeline.job(resume_queue, "resume_job", lane="control", max_runtime=300),
        ]
    )
