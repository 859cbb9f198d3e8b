"""The stuck-job reaper in Dagster; defined only when REAPER_DATABASE_URL is set."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import dagster as dg

from embed_pipeline import wiring
from embed_pipeline.defs.op import Metadata, Stopwatch, pipeline_op, table
from embed_pipeline.defs.pipeline import Names, Pipeline
from embed_pipeline.defs.polling import (
    SensorCheckFailed,
    SensorResult,
    request_unless_active,
    sensor_status,
)
from embed_pipeline.reaper import Reaper, SweepResult, reaper_of
from embed_pipeline.reaper.policy import Requeue
from embed_pipeline.settings import ReaperSettings, Settings

STUCK_JOBS = "stuck_jobs"


def reaper_definitions(pipeline: Pipeline, settings: ReaperSettings) -> dg.Definitions:
    names, reaper = pipeline.names, _reaper_resource(pipeline.settings, settings)
    job = pipeline.job(
        reap_stuck_jobs,
        "reap_stuck_jobs_job",
        lane="reaper",
        max_runtime=900,
        resources={"reaper": reaper},
    )
    return dg.Definitions(
        jobs=[job],
        sensors=[_reaper_sensor(pipeline, job, settings)],
        assets=[
            dg.AssetSpec(
                names.asset(STUCK_JOBS),
                description="Jobs of the tables `jobs` and `asr_jobs` whose worker died or hangs.",
                group_name=names("reaper"),
            )
        ],
        resources={names("reaper"): reaper},
    )


@pipeline_op(
    "One sweep over the SQL job tables: requeue or fail the jobs whose lease expired. If a table"
    " could not be swept, the op still reports what it did, and then fails."
)
def reap_stuck_jobs(
    context: dg.OpExecutionContext,
    reaper: dg.ResourceParam[Reaper],
    names: dg.ResourceParam[Names],
) -> int:
    watch = Stopwatch()
    result = reaper.sweep()
    context.log_event(dg.AssetObservation(names.asset(STUCK_JOBS), metadata=_figures(result)))
    metadata = _figures(result) | watch.speed(len(result.reaped)) | _rows(result)
    context.add_output_metadata(metadata)
    if result.problems:
        raise dg.Failure("\n".join(result.problems), metadata=metadata)
    return len(result.reaped)


def _reaper_sensor(
    pipeline: Pipeline, job: dg.JobDefinition, settings: ReaperSettings
) -> dg.SensorDefinition:
    reaper = pipeline.names("reaper")

    @dg.sensor(
        name=pipeline.names("reaper_sensor"),
        job=job,
        # The daemon evaluates sensors every 5 s; a second less does not miss the round that is due.
        minimum_interval_seconds=max(1, int(settings.interval.total_seconds()) - 1),
        default_status=sensor_status(pipeline.running),
        required_resource_keys={reaper},
        description="Every REAPER_INTERVAL_SEC: launches a sweep if leases have expired.",
    )
    def reaper_sensor(context: dg.SensorEvaluationContext) -> SensorResult:
        rehearsal = getattr(context.resources, reaper).rehearse(most=1)
        if rehearsal.reaped:
            yield request_unless_active(context.instance, job, trigger="interval")
        elif rehearsal.problems:
            raise SensorCheckFailed("\n".join(rehearsal.problems))
        else:
            left = rehearsal.left_alone
            also = f"; {left} rows have neither a lease nor a heartbeat" if left else ""
            yield dg.SkipReason(f"no lease has expired{also}")

    return reaper_sensor


def _reaper_resource(settings: Settings, own: ReaperSettings) -> dg.ResourceDefinition:
    count = partial(wiring.add_to_counters, settings)

    def opened(_context: dg.InitResourceContext) -> Iterator[Reaper]:
        with closing(reaper_of(own, count=count)) as reaper:
            yield reaper

    return dg.ResourceDefinition(
        resource_fn=opened, description="The stuck-job reaper on the database of the SQL jobs."
    )


def _figures(result: SweepResult) -> Metadata:
    """Numbers, which Dagster plots over time."""
    return {
        "requeues": result.requeues,
        "failures": result.failures,
        "lag (seconds)": round(result.lag.total_seconds(), 1),
        "scan duration (ms)": result.metrics["reaper.scan_duration_ms"],
        "left alone": result.left_alone,
        "refused": result.refused,
    }


def _rows(result: SweepResult) -> Metadata:
    if not result.reaped:
        return {}
    rows: list[dict[str, str | int | float]] = [
        {
            "table": reaped.table,
            "job": reaped.job.job_id,
            "stage": reaped.job.stage or "",
            "attempts": f"{reaped.attempts} of {reaped.max_attempts}",
            "worker": reaped.job.locked_by or "",
            "overdue (seconds)": round(reaped.overdue.total_seconds(), 1),
            "verdict": f"again in {reaped.decision.after.total_seconds():g} s"
            if isinstance(reaped.decision, Requeue)
            else f"failed: {reaped.decision.code}, {reaped.decision.reason}",
        }
        for reaped in result.reaped
    ]
    return {"jobs": table(rows)}
