"""`discover_job` and its schedule: queues the entities that lack a valid vector."""

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import RETRY_TWICE, Metadata, Stopwatch, job_of, pipeline_op
from embed_pipeline.defs.polling import concise_errors, request_unless_active, schedule_status
from embed_pipeline.usecases.entities import discover
from embed_pipeline.usecases.insight.coverage import MOST_READ, has_gaps
from embed_pipeline.worker.context import Services


class DiscoverConfig(dg.Config):
    most_jobs: int = Field(default=5_000, ge=1, description="Stop after queueing this many jobs.")
    most_read: int = Field(
        default=50_000, ge=1, description="Stop after reading this many entities."
    )


@pipeline_op(
    "Find entities whose vector is missing or invalid, and queue them.", retry_policy=RETRY_TWICE
)
def discover_missing_embeddings(
    context: dg.OpExecutionContext,
    config: DiscoverConfig,
    services: dg.ResourceParam[Services],
) -> int:
    bounds = discover.Bounds(most_jobs=config.most_jobs, most_read=config.most_read)
    watch = Stopwatch()
    report = discover.discover(services, bounds=bounds)
    metadata: Metadata = {
        "examined": report.examined,
        "missing": report.missing,
        "changed": report.changed,
        "of another model": report.invalid,
        "new jobs": report.new_jobs,
        "queued already": report.queued_already,
        "parked": report.parked,
    }
    context.add_output_metadata(metadata | watch.speed(report.examined))
    return report.new_jobs


discover_job = job_of(discover_missing_embeddings, "discover_job", lane="maintenance")


def discover_schedule_for(running: bool) -> dg.ScheduleDefinition:
    @dg.schedule(
        job=discover_job,
        cron_schedule="*/15 * * * *",
        default_status=schedule_status(running),
        description="Finds entities that other programs left without a valid vector. Launches no"
        f" run if the graph has at most {MOST_READ} entities and all have a vector or a job.",
    )
    def discover_schedule(
        context: dg.ScheduleEvaluationContext, services: dg.ResourceParam[Services]
    ) -> dg.RunRequest | dg.SkipReason:
        request = request_unless_active(context.instance, discover_job, trigger="schedule")
        if isinstance(request, dg.SkipReason):
            return request
        with concise_errors():
            if has_gaps(services):
                return request
        return dg.SkipReason("every entity has an embedding or a job")

    return discover_schedule
