"""`embed_queue_sensor`: launches `embed_job` while jobs are due and may be leased."""

from datetime import timedelta

import dagster as dg

from embed_pipeline.defs.embed.failed_runs import backoff_reason, latest_ended_runs
from embed_pipeline.defs.embed.job import embed_job
from embed_pipeline.defs.op import TRIGGER
from embed_pipeline.defs.polling import (
    EVERY_FIVE_SECONDS,
    NOT_STARTED,
    STARTED,
    SensorResult,
    concise_errors,
    max_runtime,
    queued_runs,
    runs_since,
    sensor_status,
)
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.usecases.queue.readiness import check_readiness

STARTUP_TIME = timedelta(minutes=1)
"""How long a run may take to start and lease jobs. On an idle machine it takes seconds."""


def embed_queue_sensor_for(most_runs: int, running: bool) -> dg.SensorDefinition:
    @dg.sensor(
        job=embed_job,
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=sensor_status(running),
        description="Launches embed_job while jobs are due and may be leased.",
    )
    def embed_queue_sensor(
        context: dg.SensorEvaluationContext,
        job_store: dg.ResourceParam[JobStore],
        embedding_provider: dg.ResourceParam[EmbeddingProvider],
        rate_limiter: dg.ResourceParam[RateLimiter],
    ) -> SensorResult:
        with concise_errors():
            readiness = check_readiness(job_store, rate_limiter, model=embedding_provider.model)
            owners = job_store.live_owners()
        reason = (
            readiness.reason
            or _enough_runs(context.instance, owners=owners, most=most_runs)
            or backoff_reason(latest_ended_runs(context.instance), now=SystemClock().now())
        )
        yield dg.SkipReason(reason) if reason else dg.RunRequest(tags={TRIGGER: "queue"})

    return embed_queue_sensor


def _enough_runs(instance: dg.DagsterInstance, *, owners: frozenset[str], most: int) -> str | None:
    """Why no further run is launched.

    A working run holds leases. A run that has held none for longer than `STARTUP_TIME` is dead,
    whatever Dagster reports, and must not keep others from working.
    """
    now = SystemClock().now()
    just_now = now - STARTUP_TIME
    if runs_since(instance, embed_job, since=just_now, statuses=NOT_STARTED):
        return "an embed run is starting"
    waiting = queued_runs(instance, embed_job) | runs_since(
        instance, embed_job, since=now - max_runtime(embed_job), statuses=NOT_STARTED
    )
    if len(waiting) >= most:
        return f"{len(waiting)} embed runs are waiting to start; the limit is {most}"
    busy = owners | waiting | runs_since(instance, embed_job, since=just_now, statuses=STARTED)
    if len(busy) >= most:
        return f"{len(busy)} embed runs are working; the limit is {most}"
    return None
