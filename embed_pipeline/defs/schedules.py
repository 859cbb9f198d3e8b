"""Schedules: what is worth doing by the clock, whether or not anybody looks."""

import dagster as dg

from embed_pipeline.defs.jobs import cleanup_ttl_job, discover_job


def schedules_for(status: dg.DefaultScheduleStatus) -> list[dg.ScheduleDefinition]:
    return [
        dg.ScheduleDefinition(
            name="cleanup_ttl_schedule",
            job=cleanup_ttl_job,
            cron_schedule="0 3 * * *",
            default_status=status,
            description="Deletes ended jobs past their retention, every night.",
        ),
        dg.ScheduleDefinition(
            name="discover_schedule",
            job=discover_job,
            cron_schedule="*/15 * * * *",
            default_status=status,
            description="Finds what other writers left without a good vector.",
        ),
    ]
