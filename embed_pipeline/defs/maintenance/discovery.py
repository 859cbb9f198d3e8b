"""`discover_job`, its schedule, and the sensor that fills the queue while vectors are missing.

A few entities are queued by the sensor itself: a run would take longer to start.
"""

import json
from datetime import UTC, datetime, timedelta

import dagster as dg
from pydantic import Field

from embed_pipeline.defs.op import (
    RETRY_TWICE,
    TRIGGER,
    Metadata,
    Stopwatch,
    pipeline_op,
)
from embed_pipeline.defs.pipeline import Pipeline
from embed_pipeline.defs.polling import (
    EVERY_FIVE_SECONDS,
    SensorResult,
    concise_errors,
    request_unless_active,
    schedule_status,
    sensor_status,
)
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.usecases.entities.discover import Bounds, DiscoveryReport, discover
from embed_pipeline.usecases.entities.refill import Refill, check_refill
from embed_pipeline.worker.context import Services

FEW = 1_000
"""Entities that the sensor queues itself, within a second or two."""

IN_A_TICK = Bounds(most_jobs=FEW, most_read=2 * FEW, audit=False)

AGAIN_AFTER = timedelta(minutes=15)
"""When a sweep that changed nothing is tried again."""


class DiscoverConfig(dg.Config):
    most_jobs: int = Field(default=5_000, ge=1, description="Stop after queueing this many jobs.")
    most_read: int = Field(
        default=50_000, ge=1, description="Stop after reading this many entities."
    )
    audit: bool = Field(
        default=True,
        description="First compare up to most_read entities with their vectors, for changes of"
        " other programs; audit_job does the same every five minutes.",
    )


@pipeline_op(
    "Find entities whose vector is missing or invalid, and queue them.", retry_policy=RETRY_TWICE
)
def discover_missing_embeddings(
    context: dg.OpExecutionContext,
    config: DiscoverConfig,
    services: dg.ResourceParam[Services],
) -> int:
    bounds = Bounds(most_jobs=config.most_jobs, most_read=config.most_read, audit=config.audit)
    watch = Stopwatch()
    report = discover(services, bounds=bounds, owner=context.run_id)
    metadata: Metadata = {
        "examined": report.examined,
        "missing": report.missing,
        "changed": report.changed,
        "of another model": report.invalid,
        "new jobs": report.new_jobs,
        "queued already": report.queued_already,
        "parked": report.parked,
        "left": report.left,
        "state": _state_of(report),
    }
    context.add_output_metadata(metadata | watch.speed(report.examined))
    return report.new_jobs


def _state_of(report: DiscoveryReport) -> str:
    if report.busy:
        return f"another discovery is at work: {report.busy}"
    if report.left:
        return f"stopped at its bound, about {report.left} entities are left"
    return "complete"


def discover_schedule_of(
    pipeline: Pipeline, discover_job: dg.JobDefinition, cron: str
) -> list[dg.ScheduleDefinition]:
    services = pipeline.names("services")
    chosen = pipeline.cron(discover_job, cron)
    if chosen is None:
        return []

    @dg.schedule(
        name=pipeline.names("discover_schedule"),
        job=discover_job,
        cron_schedule=chosen,
        default_status=schedule_status(pipeline.running),
        required_resource_keys={services},
        description="Finds entities that other programs left without a valid vector. Launches no"
        " run if the counts say that all have a vector or a job.",
    )
    def discover_schedule(
        context: dg.ScheduleEvaluationContext,
    ) -> dg.RunRequest | dg.SkipReason:
        request = request_unless_active(context.instance, discover_job, trigger="schedule")
        if isinstance(request, dg.SkipReason):
            return request
        with concise_errors():
            refill = check_refill(getattr(context.resources, services))
        return dg.SkipReason(refill.reason) if refill.reason else request

    return [discover_schedule]


def discover_sensor_of(pipeline: Pipeline, discover_job: dg.JobDefinition) -> dg.SensorDefinition:
    name, key = pipeline.names("discover_sensor"), pipeline.names("services")

    @dg.sensor(
        name=name,
        job=discover_job,
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=sensor_status(pipeline.running),
        required_resource_keys={key},
        description="Queues marked entities at once, and fills the queue up to EMBED_QUEUE_DEPTH"
        f" while vectors are missing: a few by itself, many by {discover_job.name}.",
    )
    def discover_sensor(context: dg.SensorEvaluationContext) -> SensorResult:
        services: Services = getattr(context.resources, key)
        request = request_unless_active(context.instance, discover_job, trigger="queue")
        if isinstance(request, dg.SkipReason):
            yield request
            return
        with concise_errors():
            refill = check_refill(services)
            if refill.reason:
                context.update_cursor("")
                yield dg.SkipReason(refill.reason)
                return
            if reason := _in_vain(context.cursor, refill):
                yield dg.SkipReason(reason)
                return
            if max(refill.unqueued, refill.marked) > FEW:
                context.update_cursor(_cursor_of(refill))
                yield _sweep(refill)
                return
            report = discover(services, bounds=IN_A_TICK, owner=name)
            is_same = _numbers_of(check_refill(services)) == _numbers_of(refill)
        # At its bound it may only have read what is parked; the next tick continues behind that.
        in_vain = is_same and not IN_A_TICK.reached(report)
        context.update_cursor(_cursor_of(refill) if in_vain else "")
        yield dg.SkipReason(f"queued {report.new_jobs} entities; {_state_of(report)}")

    return discover_sensor


def _sweep(refill: Refill) -> dg.RunRequest:
    config = DiscoverConfig(
        most_jobs=refill.most_jobs, most_read=10 * refill.most_jobs, audit=False
    )
    return dg.RunRequest(
        run_config=dg.RunConfig(ops={discover_missing_embeddings.name: config}),
        tags={TRIGGER: "queue"},
    )


def _numbers_of(refill: Refill) -> list[int]:
    return [refill.unqueued, refill.marked]


def _cursor_of(refill: Refill) -> str:
    """Kept by a sweep until a tick finds other numbers, or nothing to do."""
    return json.dumps({"numbers": _numbers_of(refill), "at": SystemClock().now().isoformat()})


def _in_vain(cursor: str | None, refill: Refill) -> str | None:
    """Why the last sweep is not repeated yet: it has changed nothing that is counted."""
    try:
        last = json.loads(cursor or "")
        same = last["numbers"] == _numbers_of(refill)
        at = datetime.fromisoformat(last["at"]).astimezone(UTC)
    except (ValueError, TypeError, KeyError):
        return None
    due_at = at + AGAIN_AFTER
    if not same or not at <= SystemClock().now() < due_at:
        return None
    return (
        f"the last sweep could queue none of {max(refill.unqueued, refill.marked)} entities;"
        f" the next one is at {due_at:%H:%M:%S} UTC"
    )
