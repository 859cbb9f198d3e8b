"""Failed runs in a row: while `embed_job` keeps failing, it is launched less and less often."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import dagster as dg

from embed_pipeline.defs.embed.job import embed_job
from embed_pipeline.defs.polling import ENDED
from embed_pipeline.domain.retry import RetryPolicy

FORGIVEN = 1
"""One run may fail by chance. From the second failure in a row on, the next run waits."""

BACKOFF = RetryPolicy(base=timedelta(seconds=30), ceiling=timedelta(minutes=10), jitter=0)

MOST_RUNS_READ = 7
"""After this many failures the wait has reached its maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    run_id: str
    failed: bool
    ended_at: datetime


def latest_ended_runs(instance: dg.DagsterInstance) -> list[EndedRun]:
    """Runs of `embed_job`, the latest end first."""
    wanted = dg.RunsFilter(job_name=embed_job.name, statuses=ENDED)
    runs = [
        EndedRun(
            run_id=record.dagster_run.run_id,
            failed=record.dagster_run.status is dg.DagsterRunStatus.FAILURE,
            # A run that never started has no end time.
            ended_at=datetime.fromtimestamp(record.end_time, UTC)
            if record.end_time
            else record.update_timestamp,
        )
        for record in instance.get_run_records(wanted, limit=MOST_RUNS_READ)
    ]
    return sorted(runs, key=lambda run: run.ended_at, reverse=True)


def failed_in_a_row(runs: Sequence[EndedRun]) -> list[EndedRun]:
    return list(takewhile(lambda run: run.failed, runs))


def backoff_reason(runs: Sequence[EndedRun], *, now: datetime) -> str | None:
    """Why the next run has to wait. Any run that did not fail ends the wait.

    A failure in the future was dated by a wrong clock and is ignored.
    """
    failed = failed_in_a_row(runs)
    if len(failed) <= FORGIVEN:
        return None
    latest = failed[0]
    next_try = latest.ended_at + BACKOFF.backoff(len(failed) - FORGIVEN, chance=0)
    if not latest.ended_at <= now < next_try:
        return None
    return (
        f"the last {len(failed)} embed runs failed (latest: {latest.run_id});"
        f" next try at {next_try:%H:%M:%S} UTC"
    )
