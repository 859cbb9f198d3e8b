"""Runs that have not ended: what keeps sensors and schedules from piling up more."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import dagster as dg

NOT_BEGUN = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
]
UNFINISHED = [*NOT_BEGUN, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def unfinished_runs(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    *,
    since: datetime,
    statuses: Sequence[dg.DagsterRunStatus] = UNFINISHED,
) -> frozenset[str]:
    """The ids of those that were created since."""
    wanted = dg.RunsFilter(job_name=job.name, statuses=statuses, created_after=since)
    return frozenset(instance.get_run_ids(wanted))


def is_at_work(instance: dg.DagsterInstance, job: dg.JobDefinition, *, now: datetime) -> bool:
    """Whether a run of the job waits or works; Dagster ends an older one, if it can."""
    return bool(unfinished_runs(instance, job, since=now - max_runtime(job)))


def max_runtime(job: dg.JobDefinition) -> timedelta:
    return timedelta(seconds=int(job.tags["dagster/max_runtime"]))
