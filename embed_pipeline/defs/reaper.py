"""The stuck-job reaper in Dagster: there only when REAPER_DATABASE_URL is set."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import dagster as dg

from embed_pipeline import wiring
from embed_pipeline.defs.metadata import Stopwatch
from embed_pipeline.defs.op import pipeline_op
from embed_pipeline.defs.polling import SensorCheckFailed
from embed_pipeline.defs.runs import is_at_work, max_runtime
from embed_pipeline.defs.sensors import SensorResult
from embed_pipeline.defs.tags import TRIGGER, run_tags
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.reaper import Reaper, SweepResult, reaper_of
from embed_pipeline.reaper.policy import Requeue
from embed_pipeline.settings import ReaperSettings, Settings

STUCK_JOBS = dg.AssetKey("stuck_jobs")
MOST_ROWS = 50


def reaper_definitions(settings: Settings, status: dg.DefaultSensorStatus) -> dg.Definitions:
    assert settings.reaper is not None, "asked for only when there is one"
    return dg.Definitions(
        jobs=[reap_stuck_jobs_job],
        sensors=[_reaper_sensor(settings.reaper, status)],
        assets=[
            dg.AssetSpec(
                STUCK_JOBS,
                description="Jobs of `jobs` and `asr_jobs` whose worker went silent.",
                group_name="reaper",
            )
        ],
        resources={"reaper": _reaper_resource(settings, settings.reaper)},
    )


@pipeline_op(
    "Requeue or fail the SQL jobs whose lease ended; fails after telling what it did when a table"
    " could not be swept."
)
def reap_stuck_jobs(context: dg.OpExecutionContext, reaper: dg.ResourceParam[Reaper]) -> int:
    watch = Stopwatch()
    result = reaper.sweep()
    context.log_event(dg.AssetObservation(STUCK_JOBS, metadata=_figures(result)))
    metadata = _figures(result) | watch.speed(len(result.reaped)) | _rows(result)
    context.add_output_metadata(metadata)
    if result.problems:
        raise dg.Failure("\n".join(result.problems), metadata=metadata)
    return len(result.reaped)


@dg.job(
    executor_def=dg.in_process_executor,
    tags=run_tags("reaper", max_runtime=900),
    description="One sweep of the stuck-job reaper over the SQL job tables.",
)
def reap_stuck_jobs_job() -> None:
    reap_stuck_jobs()


def _reaper_sensor(settings: ReaperSettings, status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    @dg.sensor(
        job=reap_stuck_jobs_job,
        # The daemon looks every 5 s; a second less does not miss the round that is due.
        minimum_interval_seconds=max(1, int(settings.interval.total_seconds()) - 1),
        default_status=status,
        description="Every REAPER_INTERVAL_SEC: launches a sweep when a lease has ended.",
    )
    def reaper_sensor(
        context: dg.SensorEvaluationContext, reaper: dg.ResourceParam[Reaper]
    ) -> SensorResult:
        outlook = reaper.rehearse(most=1)
        if outlook.reaped:
            yield _unless_at_work(context.instance)
        elif outlook.problems:
            raise SensorCheckFailed("\n".join(outlook.problems))
        else:
            ignored = outlook.left_alone
            also = f"; {ignored} rows have neither lease nor heartbeat" if ignored else ""
            yield dg.SkipReason(f"no lease has ended without its worker{also}")

    return reaper_sensor


def _unless_at_work(instance: dg.DagsterInstance) -> dg.RunRequest | dg.SkipReason:
    """Two sweeps at once are safe, but a pile of queued runs helps nobody."""
    since = SystemClock().now() - max_runtime(reap_stuck_jobs_job)
    if is_at_work(instance, reap_stuck_jobs_job, since=since):
        return dg.SkipReason("a sweep is still at work")
    return dg.RunRequest(tags={TRIGGER: "interval"})


def _reaper_resource(settings: Settings, own: ReaperSettings) -> dg.ResourceDefinition:
    count = partial(wiring.add_to_counters, settings)

    def opened(_context: dg.InitResourceContext) -> Iterator[Reaper]:
        with closing(reaper_of(own, count=count)) as reaper:
            yield reaper

    return dg.ResourceDefinition(
        resource_fn=opened, description="The stuck-job reaper on the database of the SQL jobs."
    )


def _figures(result: SweepResult) -> dict[str, Any]:
    """Numbers, so that Dagster draws them over time."""
    return {
        "requeues": result.requeues,
        "failures": result.failures,
        "lag (seconds)": round(result.lag.total_seconds(), 1),
        "scan duration (ms)": result.metrics["reaper.scan_duration_ms"],
        "left alone": result.left_alone,
        "refused": result.refused,
    }


def _rows(result: SweepResult) -> dict[str, Any]:
    if not result.reaped:
        return {}
    rows = [
        dg.TableRecord(
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
        )
        for reaped in result.reaped[:MOST_ROWS]
    ]
    return {"jobs": dg.MetadataValue.table(rows)}
