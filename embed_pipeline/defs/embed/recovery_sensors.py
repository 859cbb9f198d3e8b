"""Sensors that return the jobs of dead runs: on an interval, and as soon as a run ends."""

import json
from datetime import UTC, datetime, timedelta

import dagster as dg

from embed_pipeline.defs.op import TRIGGER
from embed_pipeline.defs.pipeline import Pipeline
from embed_pipeline.defs.polling import (
    EVERY_FIVE_SECONDS,
    SensorResult,
    concise_errors,
    is_active,
    sensor_status,
)
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.worker.recover import recover_owner


def recovery_sensors_of(
    pipeline: Pipeline,
    embed_job: dg.JobDefinition,
    recover_stale_job: dg.JobDefinition,
    interval: timedelta,
) -> list[dg.SensorDefinition]:
    return [
        _recover_stale_sensor(pipeline, recover_stale_job, interval),
        _ended_run_sensor(pipeline, embed_job, dg.DagsterRunStatus.FAILURE, "recover_failed_run"),
        _ended_run_sensor(
            pipeline, embed_job, dg.DagsterRunStatus.CANCELED, "recover_canceled_run"
        ),
    ]


def _recover_stale_sensor(
    pipeline: Pipeline, recover_stale_job: dg.JobDefinition, interval: timedelta
) -> dg.SensorDefinition:
    job_store, arrival = pipeline.names("job_store"), pipeline.settings.queue.run_arrival

    @dg.sensor(
        name=pipeline.names("recover_stale_sensor"),
        job=recover_stale_job,
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=sensor_status(pipeline.running),
        required_resource_keys={job_store},
        description=f"Launches {recover_stale_job.name} if leases have expired. Checks when the"
        " daemon starts and then every EMBED_JOB_RECOVERY_INTERVAL.",
    )
    def recover_stale_sensor(context: dg.SensorEvaluationContext) -> SensorResult:
        now, daemon = SystemClock().now(), _daemon_id(context.instance)
        last_daemon, last_check = _last_check(context.cursor)
        due_at = last_check + interval
        # A check in the future was dated by a clock that has been corrected since.
        if last_daemon == daemon and last_check <= now < due_at:
            yield dg.SkipReason(f"the next check is at {due_at:%H:%M:%S} UTC")
            return
        if is_active(context.instance, recover_stale_job, since=now - arrival):
            yield dg.SkipReason("a recovery run is queued or running")
            return
        with concise_errors():
            has_stale = getattr(context.resources, job_store).has_stale()
        context.update_cursor(json.dumps({"daemon": daemon, "at": now.isoformat()}))
        if has_stale:
            yield dg.RunRequest(tags={TRIGGER: "interval"})
        else:
            yield dg.SkipReason("0 jobs recovered: no lease has expired")

    return recover_stale_sensor


def _last_check(cursor: str | None) -> tuple[str | None, datetime]:
    """By which daemon and when. A first tick, or a cursor edited by hand, has neither."""
    try:
        last = json.loads(cursor or "")
        return str(last["daemon"]), datetime.fromisoformat(last["at"]).astimezone(UTC)
    except (ValueError, TypeError, KeyError):
        return None, datetime.min.replace(tzinfo=UTC)


def _daemon_id(instance: dg.DagsterInstance) -> str:
    """Another id means that the daemon restarted; recovery then ignores the interval."""
    heartbeat = instance.get_daemon_heartbeats().get("SENSOR")
    return heartbeat.daemon_id if heartbeat and heartbeat.daemon_id else ""


def _ended_run_sensor(
    pipeline: Pipeline, embed_job: dg.JobDefinition, ending: dg.DagsterRunStatus, name: str
) -> dg.SensorDefinition:
    """Dagster calls it for runs of its own code location only."""
    name, job_store = pipeline.names(name), pipeline.names("job_store")

    def recover_run(context: dg.RunStatusSensorContext) -> None:
        run = context.dagster_run
        # Any other error would move the cursor on, and this run would never be recovered.
        with concise_errors():
            recovery = recover_owner(getattr(context.resources, job_store), run.run_id)
        message = f"{name}: {len(recovery.returned)} jobs of this run are pending again"
        if recovery.failed:
            message += f", {len(recovery.failed)} crashed every run that took them and are failed"
        context.instance.report_engine_event(f"{message}.", run)

    return dg.RunStatusSensorDefinition(
        name=name,
        run_status=ending,
        run_status_sensor_fn=recover_run,
        monitored_jobs=[embed_job],
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=sensor_status(pipeline.running),
        required_resource_keys={job_store},
        description=f"Returns the jobs that a run of {embed_job.name} still held when it ended as"
        f" {ending.value}, without waiting for its leases to expire. This counts as a recovery, so"
        " that a job that crashes every run is marked failed in the end.",
    )
