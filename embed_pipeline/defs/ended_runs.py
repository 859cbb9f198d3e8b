"""Runs that failed or were cancelled give their jobs back at once, not when their leases end."""

import dagster as dg

from embed_pipeline.defs.jobs import embed_job
from embed_pipeline.defs.polling import EVERY_FIVE_SECONDS, concise_errors
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.worker.recover import recover_owner

ENDINGS = {
    "recover_failed_run": dg.DagsterRunStatus.FAILURE,
    "recover_canceled_run": dg.DagsterRunStatus.CANCELED,
}


def ended_run_sensors(status: dg.DefaultSensorStatus) -> list[dg.SensorDefinition]:
    return [_sensor(name, ending, status) for name, ending in ENDINGS.items()]


def _sensor(
    name: str, ending: dg.DagsterRunStatus, status: dg.DefaultSensorStatus
) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        run_status=ending,
        name=name,
        monitored_jobs=[embed_job],
        minimum_interval_seconds=EVERY_FIVE_SECONDS,
        default_status=status,
        description=f"Returns the jobs that an embed_job held when it ended as {ending.value}."
        " Their recoveries are counted, so that a job that kills every run comes to an end.",
    )
    def give_back(
        context: dg.RunStatusSensorContext, job_store: dg.ResourceParam[JobStore]
    ) -> None:
        run = context.dagster_run
        # An error of another kind would move the cursor on: Dagster would never ask again.
        with concise_errors():
            recovery = recover_owner(job_store, run.run_id)
        told = f"{name}: {len(recovery.returned)} jobs of this run are pending again"
        if recovery.failed:
            told += f", {len(recovery.failed)} ended every run that took them and failed"
        context.instance.report_engine_event(f"{told}.", run)

    return give_back
