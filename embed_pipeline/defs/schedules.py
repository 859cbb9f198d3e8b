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
from embed_pipeline.defs.polling import concise_errors
from embed_pipeline.defs.runs import is_at_work, max_runtime
from embed_pipeline.defs.tags import TRIGGER
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.usecases.insight.coverage import MOST_READ, has_gaps
from embed_pipeline.worker.context import Services

BY_THE_CLOCK = {TRIGGER: "schedule"}


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
    return [_discover_schedule(status), *(_schedule(turn, status) for turn in TURNS)]


def _schedule(turn: Turn, status: dg.DefaultScheduleStatus) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=turn.name,
        job=turn.job,
        cron_schedule=turn.cron,
        default_status=status,
        description=turn.description,
    )
    def unless_at_work(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return _at_work(context.instance, turn.job) or dg.RunRequest(tags=BY_THE_CLOCK)

    return unless_at_work


def _discover_schedule(status: dg.DefaultScheduleStatus) -> dg.ScheduleDefinition:
    @dg.schedule(
        job=discover_job,
        cron_schedule="*/15 * * * *",
        default_status=status,
        description="Finds what other writers left without a good vector. Launches no run where a "
        f"look at the whole graph, of up to {MOST_READ} entities, finds nothing.",
    )
    def discover_schedule(
        context: dg.ScheduleEvaluationContext, services: dg.ResourceParam[Services]
    ) -> dg.RunRequest | dg.SkipReason:
        at_work = _at_work(context.instance, discover_job)
        if at_work:
            return at_work
        with concise_errors():
            worth_a_run = has_gaps(services)
        if worth_a_run:
            return dg.RunRequest(tags=BY_THE_CLOCK)
        return dg.SkipReason("every entity has its embedding or a job")

    return discover_schedule


def _at_work(instance: dg.DagsterInstance, job: dg.JobDefinition) -> dg.SkipReason | None:
    """A run that waits for its lane, or takes long, is enough."""
    since = SystemClock().now() - max_runtime(job)
    if is_at_work(instance, job, since=since):
        return dg.SkipReason(f"the {job.name} before is still at work or waiting")
    return None
