"""Sensors look first and launch only when there is something to do."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from embed_pipeline.defs.ended_runs import ended_run_sensors
from embed_pipeline.defs.failing import latest_ended, pause_after
from embed_pipeline.defs.jobs import embed_job, recover_stale_job
from embed_pipeline.defs.polling import EVERY_FIVE_SECONDS, concise_errors
from embed_pipeline.defs.runs import (
    BEGUN,
    NOT_BEGUN,
    is_at_work,
    max_runtime,
    queued_runs,
    runs_since,
)
from embed_pipeline.defs.tags import TRIGGER
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.ports.rate_limiter import RateLimiter
from embed_pipeline.settings import QueueSettings
from embed_pipeline.usecases.queue.readiness import check_readiness

ARRIVAL = timedelta(minutes=1)
"""How long a run may take to start and do something; seconds, on a machine at rest.

After a crash Dagster takes dead runs for living ones until their `max_runtime` is over. Nobody
waits that long for them.
"""

SensorResult = Iterator[dg.RunRequest | dg.SkipReason]


def sensors_for(
    queue: QueueSettings, *, status: dg.DefaultSensorStatus
) -> list[dg.SensorDefinition]:
    """Without a recovery interval there is no recovery sensor at all."""
    embed_queue_sensor = _embed_queue_sensor(queue.max_runs, status)
    if queue.recovery_interval is None:
        return [embed_queue_sensor]
    return [
        embed_queue_sensor,
        _recover_stale_sensor(queue.recovery_interval, status),
        *ended_run_sensors(status),
    ]


def _embed_queue_sensor(most_runs: int, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
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
        with concise_errors():
            readiness = check_readiness(job_store, rate_limiter, model=embedding_provider.model)
            owners = job_store.live_owners()
        reason = (
            readiness.reason
            or _enough_runs(context.instance, owners=owners, most=most_runs)
            or pause_after(latest_ended(context.instance), now=SystemClock().now())
        )
        yield dg.SkipReason(reason) if reason else dg.RunRequest(tags={TRIGGER: "queue"})

    return embed_queue_sensor


def _enough_runs(instance: dg.DagsterInstance, *, owners: frozenset[str], most: int) -> str | None:
    """Why no further run is launched.

    A run at work holds leases. One that has held none for longer than it takes to start is dead,
    whatever Dagster believes of it, and must not keep others from working.
    """
    now = SystemClock().now()
    arrived = now - ARRIVAL
    if runs_since(instance, embed_job, since=arrived, statuses=NOT_BEGUN):
        return "an embed run is on its way"
    waiting = queued_runs(instance, embed_job) | runs_since(
        instance, embed_job, since=now - max_runtime(embed_job), statuses=NOT_BEGUN
    )
    if len(waiting) >= most:
        return f"{len(waiting)} embed runs wait for their turn; the limit is {most}"
    busy = owners | waiting | runs_since(instance, embed_job, since=arrived, statuses=BEGUN)
    if len(busy) >= most:
        return f"{len(busy)} embed runs are at work; the limit is {most}"
    return None


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
        # A look in the future was dated by a clock that has been set right since.
        if last_daemon == daemon and last_look <= now < due_at:
            yield dg.SkipReason(f"the next look is at {due_at:%H:%M:%S} UTC")
            return
        if is_at_work(context.instance, recover_stale_job, since=now - ARRIVAL):
            yield dg.SkipReason("a recovery is on its way")
            return
        with concise_errors():
            has_stale = job_store.has_stale()
        context.update_cursor(json.dumps({"daemon": daemon, "at": now.isoformat()}))
        if has_stale:
            yield dg.RunRequest(tags={TRIGGER: "interval"})
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
