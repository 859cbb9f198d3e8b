"""Schedules: what is worth doing by the clock, whether or not anybody looks."""

from typing import NamedTuple

import dagster as dg

from embed_pipeline.defs.jobs import (
    cleanup_ttl_job,
    daily_report_job,
    discover_job,
    observe_job,
    prune_history_job,
)
from embed_pipeline.defs.runs import is_at_work, max_runtime
from embed_pipeline.defs.tags import TRIGGER
from embed_pipeline.ports.clock import SystemClock


class Turn(NamedTuple):
    name: str
    job: dg.JobDefinition
    cron: str
    description: str


TURNS = [
    Turn(
        "observe_schedule",
        observe_job,
        "*/5 * * * *",
        "Writes the numbers on the assets and judges the checks.",
    ),
    Turn(
        "discover_schedule",
        discover_job,
        "*/15 * * * *",
        "Finds what other writers left without a good vector.",
    ),
    Turn(
        "cleanup_ttl_schedule",
        cleanup_ttl_job,
        "0 3 * * *",
        "Deletes ended jobs past their retention, every night.",
    ),
    Turn(
        "prune_history_schedule",
        prune_history_job,
        "30 3 * * *",
        "Deletes old runs of this pipeline from Dagster's own storage, every night.",
    ),
    Turn(
        "daily_report_schedule",
        daily_report_job,
        "0 6 * * *",
        "Reports on the last 24 hours, every morning.",
    ),
]


def schedules_for(status: dg.DefaultScheduleStatus) -> list[dg.ScheduleDefinition]:
    return [_schedule(turn, status) for turn in TURNS]


def _schedule(turn: Turn, status: dg.DefaultScheduleStatus) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=turn.name,
        job=turn.job,
        cron_schedule=turn.cron,
        default_status=status,
        description=turn.description,
    )
    def unless_at_work(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """A run that waits for its lane, or takes long, is enough."""
        since = SystemClock().now() - max_runtime(turn.job)
        if is_at_work(context.instance, turn.job, since=since):
            return dg.SkipReason(f"the {turn.job.name} before is still at work or waiting")
        return dg.RunRequest(tags={TRIGGER: "schedule"})

    return unless_at_work
