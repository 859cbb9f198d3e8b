"""Observation: the assets, their checks, the figures of every five minutes, the daily report."""

import dagster as dg

from embed_pipeline.defs.assets import observed_assets
from embed_pipeline.defs.observe.daily_report import daily_report as report
from embed_pipeline.defs.observe.observation import check_embeddings_of, observe
from embed_pipeline.defs.pipeline import Pipeline
from embed_pipeline.defs.polling import schedule_for

__all__ = ["observe_definitions"]


def observe_definitions(pipeline: Pipeline) -> dg.Definitions:
    observe_job = pipeline.job(observe, "observe_job", lane="observation")
    report_job = pipeline.job(report, "daily_report_job", lane="observation")
    return dg.Definitions(
        jobs=[observe_job, report_job],
        assets=observed_assets(pipeline),
        asset_checks=[check_embeddings_of(pipeline)],
        schedules=[
            *schedule_for(pipeline, observe_job, "*/5 * * * *"),
            *schedule_for(pipeline, report_job, "0 6 * * *"),
        ],
    )
