"""What sensors and schedules share: intervals, concise errors, and no second run of a job.

Dagster may list a run as unfinished long after its process died, until `max_runtime` is over.
Unfinished runs therefore count only if they were created since a given time.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import dagster as dg

from embed_pipeline.defs.op import TRIGGER
from embed_pipeline.defs.pipeline import PIPELINE, Pipeline
from embed_pipeline.errors import EmbedPipelineError
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.telemetry import emit

EVERY_FIVE_SECONDS = 4
"""The daemon evaluates sensors every 5 s; asking for 5 would often miss a round and get 8."""

QUEUED = [dg.DagsterRunStatus.QUEUED]
"""Of any age: a queued run has no process that could have died, and will start."""

NOT_STARTED = [*QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
STARTED = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
UNFINISHED = [*NOT_STARTED, *STARTED]
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]

SensorResult = Iterator[dg.RunRequest | dg.SkipReason]


class SensorCheckFailed(dg.DagsterError):
    """A failed tick that shows our sentence. Dagster prints errors of its own family unchanged.

    It also keeps the cursor, even that of a run status sensor, so the next tick tries again.
    """


@contextmanager
def concise_errors() -> Iterator[None]:
    try:
        yield
    except EmbedPipelineError as error:
        emit("look.failed", error=error)
        # The log has the causes. In the UI their stacks would bury the sentence.
        raise SensorCheckFailed(str(error)) from None


def run_ids(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    statuses: Sequence[dg.DagsterRunStatus],
    *,
    since: datetime | None = None,
) -> frozenset[str]:
    """This pipeline's runs of the job in one of these statuses, created since then.

    Another code location may have a job of the same name. The tag is compared here: a join with
    the tags would cost more than reading the few unfinished runs.
    """
    wanted = dg.RunsFilter(job_name=job.name, statuses=statuses, created_after=since)
    runs = instance.get_runs(wanted)
    return frozenset(run.run_id for run in runs if run.tags.get(PIPELINE) == job.tags[PIPELINE])


def is_active(instance: dg.DagsterInstance, job: dg.JobDefinition, *, since: datetime) -> bool:
    """Whether a run of the job is queued, or was created since then and has not ended."""
    queued = run_ids(instance, job, QUEUED)
    return bool(queued or run_ids(instance, job, UNFINISHED, since=since))


def max_runtime(job: dg.JobDefinition) -> timedelta:
    """Dagster ends a run that takes longer, if it can."""
    return timedelta(seconds=int(job.tags["dagster/max_runtime"]))


def request_unless_active(
    instance: dg.DagsterInstance, job: dg.JobDefinition, *, trigger: str
) -> dg.RunRequest | dg.SkipReason:
    """A run that waits for its lane, or takes long, is enough: runs must not pile up."""
    if is_active(instance, job, since=SystemClock().now() - max_runtime(job)):
        return dg.SkipReason(f"the previous run of {job.name} is still queued or running")
    return dg.RunRequest(tags={TRIGGER: trigger})


def sensor_status(running: bool) -> dg.DefaultSensorStatus:
    return dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED


def schedule_status(running: bool) -> dg.DefaultScheduleStatus:
    return dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED


def schedule_for(
    pipeline: Pipeline, job: dg.JobDefinition, cron: str
) -> list[dg.ScheduleDefinition]:
    """A schedule named after its job, which launches nothing while a run of the job is active.

    There is none if the pipeline's schedules leave it out.
    """
    chosen = pipeline.cron(job, cron)
    if chosen is None:
        return []

    @dg.schedule(
        name=f"{job.name.removesuffix('_job')}_schedule",
        job=job,
        cron_schedule=chosen,
        default_status=schedule_status(pipeline.running),
        description=job.description,
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return request_unless_active(context.instance, job, trigger="schedule")

    return [schedule]
