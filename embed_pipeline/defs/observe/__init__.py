"""Observation: the assets, their checks, the figures of every five minutes, the daily report."""

import dagster as dg

from embed_pipeline.defs.observe.assets import Upstream, assets_for
from embed_pipeline.defs.observe.daily_report import daily_report_job
from embed_pipeline.defs.observe.observation import check_embeddings, observe_job
from embed_pipeline.defs.polling import schedule_for
from embed_pipeline.settings import Settings

__all__ = ["daily_report_job", "observe_definitions", "observe_job"]


def observe_definitions(settings: Settings, deps: Upstream, *, running: bool) -> dg.Definitions:
    return dg.Definitions(
        jobs=[observe_job, daily_report_job],
        assets=assets_for(settings, deps),
        asset_checks=[check_embeddings],
        schedules=[
            schedule_for(observe_job, "*/5 * * * *", running=running),
            schedule_for(daily_report_job, "0 6 * * *", running=running),
        ],
    )
