"""Maintenance: find missing and changed vectors, delete old jobs and old Dagster runs."""

import dagster as dg

from embed_pipeline.defs.maintenance.audit import audit_embeddings
from embed_pipeline.defs.maintenance.cleanup import cleanup_ttl
from embed_pipeline.defs.maintenance.discovery import (
    discover_missing_embeddings,
    discover_schedule_of,
    discover_sensor_of,
)
from embed_pipeline.defs.maintenance.prune_history import prune_history as prune
from embed_pipeline.defs.pipeline import Pipeline
from embed_pipeline.defs.polling import schedule_for

__all__ = ["maintenance_definitions"]


def maintenance_definitions(pipeline: Pipeline) -> dg.Definitions:
    audit_job = pipeline.job(audit_embeddings, "audit_job", lane="maintenance")
    cleanup_job = pipeline.job(cleanup_ttl, "cleanup_ttl_job", lane="maintenance")
    discover_job = pipeline.job(discover_missing_embeddings, "discover_job", lane="maintenance")
    prune_job = pipeline.job(prune, "prune_history_job", lane="maintenance")
    return dg.Definitions(
        jobs=[audit_job, cleanup_job, discover_job, prune_job],
        sensors=[discover_sensor_of(pipeline, discover_job)],
        schedules=[
            *schedule_for(pipeline, audit_job, "*/5 * * * *"),
            *discover_schedule_of(pipeline, discover_job, "*/15 * * * *"),
            *schedule_for(pipeline, cleanup_job, "0 3 * * *"),
            *schedule_for(pipeline, prune_job, "30 3 * * *"),
        ],
    )
