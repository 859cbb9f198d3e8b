"""Maintenance: find missing and changed vectors, delete old jobs and old Dagster runs."""

import dagster as dg

from embed_pipeline.defs.maintenance.audit import audit_job
from embed_pipeline.defs.maintenance.cleanup import cleanup_ttl_job
from embed_pipeline.defs.maintenance.discovery import (
    discover_job,
    discover_schedule_for,
    discover_sensor_for,
)
from embed_pipeline.defs.maintenance.prune_history import prune_history_job
from embed_pipeline.defs.polling import schedule_for

__all__ = [
    "audit_job",
    "cleanup_ttl_job",
    "discover_job",
    "maintenance_definitions",
    "prune_history_job",
]


def maintenance_definitions(*, running: bool) -> dg.Definitions:
    return dg.Definitions(
        sensors=[discover_sensor_for(running)],
        jobs=[audit_job, cleanup_ttl_job, discover_job, prune_history_job],
        schedules=[
            schedule_for(audit_job, "*/5 * * * *", running=running),
            discover_schedule_for(running),
            schedule_for(cleanup_ttl_job, "0 3 * * *", running=running),
            schedule_for(prune_history_job, "30 3 * * *", running=running),
        ],
    )
