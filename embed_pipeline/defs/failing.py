"""Runs that fail one after the other are launched less and less often."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import dagster as dg

from embed_pipeline.defs.runs import ENDED
from embed_pipeline.domain.retry import RetryPolicy

EMBED_JOB = "embed_job"
"""By its name: ops that look at its runs are imported where the job itself is made."""

FORGIVEN = 1
"""A run may die by chance and the next one do its work; from the second in a row on they wait."""

PAUSES = RetryPolicy(base=timedelta(seconds=30), ceiling=timedelta(minutes=10), jitter=0)

LOOKED_AT = 7
"""After so many failures the pause has its full length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    run_id: str
    failed: bool
    ended_at: datetime


def latest_ended(instance: dg.DagsterInstance) -> list[EndedRun]:
    """Embed runs, the latest end first."""
    wanted = dg.RunsFilter(job_name=EMBED_JOB, statuses=ENDED)
    runs = [
        EndedRun(
            run_id=record.dagster_run.run_id,
            failed=record.dagster_run.status is dg.DagsterRunStatus.FAILURE,
            # A run that never started has no end of its own.
            ended_at=datetime.fromtimestamp(record.end_time, UTC)
            if record.end_time
            else record.update_timestamp,
        )
        for record in instance.get_run_records(wanted, limit=LOOKED_AT)
    ]
    return sorted(runs, key=lambda run: run.ended_at, reverse=True)


def failed_in_a_row(runs: Sequence[EndedRun]) -> list[EndedRun]:
    return list(takewhile(lambda run: run.failed, runs))


def pause_after(runs: Sequence[EndedRun], *, now: datetime) -> str | None:
    """Why the next run has to wait; anything but a failure ends the pause.

    A failure in the future was dated by a clock that is wrong, and counts for nothing.
    """
    failed = failed_in_a_row(runs)
    if len(failed) <= FORGIVEN:
        return None
    latest = failed[0]
    next_try = latest.ended_at + PAUSES.backoff(len(failed) - FORGIVEN, chance=0)
    if not latest.ended_at <= now < next_try:
        return None
    return (
        f"the last {len(failed)} embed runs failed (latest: {latest.run_id});"
        f" next try at {next_try:%H:%M:%S} UTC"
    )
