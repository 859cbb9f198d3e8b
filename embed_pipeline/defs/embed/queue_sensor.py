"""`embed_queue_sensor`: launches `embed_job` while jobs are due and may be leased.

While runs of `embed_job` keep failing, it launches them less and less often.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import dagster as dg

from embed_pipeline.defs.op import TRIGGER
from embed_pipeline.defs.pipeline import PIPELINE, Pipeline
from embed_pipeline.defs.polling import (
    ENDED,
    EVERY_FIVE_SECONDS,
    NOT_STARTED,
    QUEUED,
    STARTED,
    SensorResult,
    concise_errors,
    max_runtime,
    run_ids,
    sensor_status,
)
from embed_pipeline.domain.transition import RetryPolicy
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.settings import QueueSettings
from embed_pipeline.usecases.queue.readiness import check_readiness

FORGIVEN = 1
"""One run may fail by chance. From the second failure in a row on, the next run waits."""

BACKOFF = RetryPolicy(base=timedelta(seconds=30), ceiling=timedelta(minutes=10), jitter=0)

MOST_FAILURES = 7
"""After this many failures the wait has reached its maximum."""

MOST_RUNS_READ = 50
"""Ended runs of a job of that name; some may be those of another code location."""


def embed_queue_sensor_of(pipeline: Pipeline, embed_job: dg.JobDefinition) -> dg.SensorDefinition:
    parts = [pipeline.names(part) for part in ("job_store", "rate_limiter", "embedding_provider")]

    @dg.sensor(
        name=pipeline.names("embed_queue_sensor"),
        job=embed_job,
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=sensor_status(pipeline.running),
        required_resource_keys=set(parts),
        description=f"Launches {embed_job.name} while jobs are due and may be leased.",
    )
    def embed_queue_sensor(context: dg.SensorEvaluationContext) -> SensorResult:
        jobs, limiter, provider = (getattr(context.resources, key) for key in parts)
        with concise_errors():
            readiness = check_readiness(jobs, limiter, model=provider.model)
            owners = jobs.live_owners()
        ended = latest_ended_runs(context.instance, embed_job.name, embed_job.tags[PIPELINE])
        reason = (
            readiness.reason
            or _enough_runs(context.instance, embed_job, pipeline.settings.queue, owners)
            or backoff_reason(ended, now=SystemClock().now())
        )
        yield dg.SkipReason(reason) if reason else dg.RunRequest(tags={TRIGGER: "queue"})

    return embed_queue_sensor


def _enough_runs(
    instance: dg.DagsterInstance,
    embed_job: dg.JobDefinition,
    settings: QueueSettings,
    owners: frozenset[str],
) -> str | None:
    """Why no further run is launched.

    A working run holds leases. A run that holds none after EMBED_RUN_ARRIVAL is dead, whatever
    Dagster reports, and must not keep others from working.
    """
    now, most = SystemClock().now(), settings.max_runs
    just_now = now - settings.run_arrival
    if run_ids(instance, embed_job, NOT_STARTED, since=just_now):
        return "an embed run is starting"
    still_possible = now - max_runtime(embed_job)
    waiting = run_ids(instance, embed_job, QUEUED) | run_ids(
        instance, embed_job, NOT_STARTED, since=still_possible
    )
    if len(waiting) >= most:
        return f"{len(waiting)} embed runs are waiting to start; the limit is {most}"
    busy = owners | waiting | run_ids(instance, embed_job, STARTED, since=just_now)
    if len(busy) >= most:
        return f"{len(busy)} embed runs are working; the limit is {most}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    run_id: str
    failed: bool
    ended_at: datetime


def latest_ended_runs(instance: dg.DagsterInstance, job: str, pipeline: str) -> list[EndedRun]:
    """This pipeline's runs of the job, the latest end first."""
    wanted = dg.RunsFilter(job_name=job, statuses=ENDED)
    runs = [
        EndedRun(
            run_id=record.dagster_run.run_id,
            failed=record.dagster_run.status is dg.DagsterRunStatus.FAILURE,
            # A run that never started has no end time.
            ended_at=datetime.fromtimestamp(record.end_time, UTC)
            if record.end_time
            else record.update_timestamp,
        )
        for record in instance.get_run_records(wanted, limit=MOST_RUNS_READ)
        if record.dagster_run.tags.get(PIPELINE) == pipeline
    ]
    return sorted(runs[:MOST_FAILURES], key=lambda run: run.ended_at, reverse=True)


def failed_in_a_row(runs: Sequence[EndedRun]) -> list[EndedRun]:
    return list(takewhile(lambda run: run.failed, runs))


def backoff_reason(runs: Sequence[EndedRun], *, now: datetime) -> str | None:
    """Why the next run has to wait. Any run that did not fail ends the wait.

    A failure in the future was dated by a wrong clock and is ignored.
    """
    failed = failed_in_a_row(runs)
    if len(failed) <= FORGIVEN:
        return None
    latest = failed[0]
    next_try = latest.ended_at + BACKOFF.backoff(len(failed) - FORGIVEN, chance=0)
    if not latest.ended_at <= now < next_try:
        return None
    return (
        f"the last {len(failed)} embed runs failed (latest: {latest.run_id});"
        f" next try at {next_try:%H:%M:%S} UTC"
    )
