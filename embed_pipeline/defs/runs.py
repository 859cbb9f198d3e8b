"""Runs that have not ended: what keeps sensors and schedules from piling up more."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import dagster as dg

NOT_BEGUN = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
]
BEGUN = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
UNFINISHED = [*NOT_BEGUN, *BEGUN]
ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def runs_since(
    instance: dg.DagsterInstance,
    job: dg.JobDefinition,
    *,
    since: datetime,
    statuses: Sequence[dg.DagsterRunStatus],
) -> frozenset[str]:
    """The ids of those that were created since."""
    wanted = dg.RunsFilter(job_name=job.name, statuses=statuses, created_after=since)
    return frozenset(instance.get_run_ids(wanted))


def queued_runs(instance: dg.DagsterInstance, job: dg.JobDefinition) -> frozenset[str]:
    """Of whatever age: what waits in a queue cannot die with a machine, and starts in its turn."""
    wanted = dg.RunsFilter(job_name=job.name, statuses=[dg.DagsterRunStatus.QUEUED])
    return frozenset(instance.get_run_ids(wanted))


def is_at_work(instance: dg.DagsterInstance, job: dg.JobDefinition, *, since: datetime) -> bool:
    """Whether a run of the job is queued, or was created since and has not ended."""
    return bool(
        queued_runs(instance, job) or runs_since(instance, job, since=since, statuses=UNFINISHED)
    )


def max_runtime(job: dg.JobDefinition) -> timedelta:
    """Dagster ends an older run, if it can."""
    return timedelta(seconds=int(job.tags["dagster/max_runtime"]))
