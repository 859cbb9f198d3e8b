"""Sensors look first and launch only when there is something to do."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from embed_pipeline.defs.jobs import embed_job, recover_stale_job
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.worker.look import look

MOST_EMBED_RUNS = 2

EVERY_FIVE_SECONDS = 4
"""The daemon looks every 5 s; asking for 5 would often miss a round and get 8."""

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

SensorResult = Iterator[dg.RunRequest | dg.SkipReason]


def sensors_for(
    *, recovery_interval: timedelta | None, status: dg.DefaultSensorStatus
) -> list[dg.SensorDefinition]:
    """Without a recovery interval there is no recovery sensor at all."""
    sensors = [_embed_queue_sensor(status)]
    if recovery_interval is not None:
        sensors.append(_recover_stale_sensor(recovery_interval, status))
    return sensors


def _embed_queue_sensor(status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    @dg.sensor(
        job=embed_job,
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=status,
        description="Launches embed_job while jobs are due and may be leased.",
    )
    def embed_queue_sensor(
        context: dg.SensorEvaluationContext,
        job_store: dg.ResourceParam[JobStore],
        embedding_provider: dg.ResourceParam[EmbeddingProvider],
        rate_limiter: dg.ResourceParam[RateLimiter],
    ) -> SensorResult:
        outlook = look(job_store, rate_limiter, model=embedding_provider.model)
        if outlook.reason is not None:
            yield dg.SkipReason(outlook.reason)
            return
        unfinished = _unfinished_runs(context.instance, embed_job, SystemClock().now())
        busy = max(unfinished, len(job_store.live_owners()))
        if busy >= MOST_EMBED_RUNS:
            yield dg.SkipReason(f"{busy} embed runs are at work; the limit is {MOST_EMBED_RUNS}")
            return
        yield dg.RunRequest(tags={"embed_pipeline/trigger": "queue"})

    return embed_queue_sensor


def _unfinished_runs(instance: dg.DagsterInstance, job: dg.JobDefinition, now: datetime) -> int:
    """Older ones are dead: Dagster ends a run at its `max_runtime`, if it can."""
    young = now - timedelta(seconds=int(job.tags["dagster/max_runtime"]))
    return instance.get_runs_count(
        dg.RunsFilter(job_name=job.name, statuses=UNFINISHED, created_after=young)
    )


def _recover_stale_sensor(
    interval: timedelta, status: dg.DefaultSensorStatus
) -> dg.SensorDefinition:
    @dg.sensor(
        job=recover_stale_job,
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=status,
        description="At start and every EMBED_JOB_RECOVERY_INTERVAL: recovers stale jobs.",
    )
    def recover_stale_sensor(
        context: dg.SensorEvaluationContext, job_store: dg.ResourceParam[JobStore]
    ) -> SensorResult:
        now, daemon = SystemClock().now(), _daemon_id(context.instance)
        last_daemon, last_look = _last_look(context.cursor)
        due_at = last_look + interval
        if last_daemon == daemon and now < due_at:
            yield dg.SkipReason(f"the next look is at {due_at:%H:%M:%S} UTC")
            return
        if _unfinished_runs(context.instance, recover_stale_job, now):
            yield dg.SkipReason("a recovery is on its way")
            return
        context.update_cursor(json.dumps({"daemon": daemon, "at": now.isoformat()}))
        if job_store.has_stale():
            yield dg.RunRequest(tags={"embed_pipeline/trigger": "interval"})
        else:
            yield dg.SkipReason("0 jobs recovered: no lease has ended without its worker")

    return recover_stale_sensor


def _last_look(cursor: str | None) -> tuple[str | None, datetime]:
    """By which daemon, and when; none by a first tick, nor where a person edited the cursor."""
    try:
        last = json.loads(cursor or "")
        return str(last["daemon"]), datetime.fromisoformat(last["at"]).astimezone(UTC)
    except (ValueError, TypeError, KeyError):
        return None, datetime.min.replace(tzinfo=UTC)


def _daemon_id(instance: dg.DagsterInstance) -> str:
    """Another daemon means a restart, after which recovery does not wait for its interval."""
    heartbeat = instance.get_daemon_heartbeats().get("SENSOR")
    return heartbeat.daemon_id if heartbeat and heartbeat.daemon_id else ""
