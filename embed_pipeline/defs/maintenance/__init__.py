"""Maintenance on schedules: find missing vectors, delete old jobs and old Dagster runs."""

import dagster as dg

from embed_pipeline.defs.maintenance.cleanup import cleanup_ttl_job
from embed_pipeline.defs.maintenance.discovery import discover_job, discover_schedule_for
from embed_pipeline.defs.maintenance.prune_history import prune_history_job
from embed_pipeline.defs.polling import schedule_for

__all__ = ["cleanup_ttl_job", "discover_job", "maintenance_definitions", "prune_history_job"]


def maintenance_definitions(*, running: bool) -> dg.Definitions:
    return dg.Definitions(
        jobs=[cleanup_ttl_job, discover_job, prune_history_job],
        schedules=[
            discover_schedule_for(running),
            schedule_for(cleanup_ttl_job, "0 3 * * *", running=running),
            schedule_for(prune_history_job, "30 3 * * *", running=running),
        ],
    )
