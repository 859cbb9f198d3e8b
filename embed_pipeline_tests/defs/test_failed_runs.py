"""How long the next embed run waits after others have failed."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from embed_pipeline.defs.embed.queue_sensor import (
    MOST_FAILURES,
    EndedRun,
    backoff_reason,
    latest_ended_runs,
)
from embed_pipeline.defs.pipeline import PIPELINE
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.defs.scene import add_run

NOW = FakeClock().now()
OURS, THEIRS = {PIPELINE: "embed_pipeline@1"}, {PIPELINE: "embed_pipeline@2"}


def ended(*outcomes: str, ago: timedelta = timedelta(0)) -> list[EndedRun]:
    """The latest first, all at one time."""
    return [
        EndedRun(run_id=f"run-{number}", failed=outcome == "failed", ended_at=NOW - ago)
        for number, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("failures", "pause"),
    [
        (2, 30 * SECOND),
        (3, MINUTE),
        (4, 2 * MINUTE),
        (5, 4 * MINUTE),
        (6, 8 * MINUTE),
        (MOST_FAILURES, 10 * MINUTE),
    ],
)
def test_pause_doubles_from_half_a_minute_to_ten_minutes(failures: int, pause: timedelta) -> None:
    failed = ["failed"] * failures

    reason = backoff_reason(ended(*failed, ago=pause - SECOND), now=NOW)

    assert reason == (
        f"the last {failures} embed runs failed (latest: run-0);"
        f" next try at {NOW + SECOND:%H:%M:%S} UTC"
    )
    assert backoff_reason(ended(*failed, ago=pause), now=NOW) is None


@pytest.mark.parametrize(
    "outcomes",
    [
        (),
        ("failed",),
        ("succeeded", "failed", "failed", "failed"),
        ("failed", "succeeded", "failed", "failed"),
    ],
)
def test_one_failure_and_failures_before_a_success_ask_for_no_pause(
    outcomes: tuple[str, ...],
) -> None:
    assert backoff_reason(ended(*outcomes), now=NOW) is None


def test_failures_that_a_wrong_clock_put_in_the_future_freeze_nothing() -> None:
    assert backoff_reason(ended("failed", "failed", ago=-HOUR), now=NOW) is None


@pytest.mark.parametrize("ending", [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED])
def test_anything_but_a_failure_ends_the_row(
    instance: dg.DagsterInstance, ending: dg.DagsterRunStatus
) -> None:
    for status in (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.FAILURE, ending):
        add_run(instance, status, tags=OURS)
    add_run(instance, dg.DagsterRunStatus.STARTED, tags=OURS)
    add_run(instance, dg.DagsterRunStatus.FAILURE, job="observe_job", tags=OURS)
    add_run(instance, dg.DagsterRunStatus.FAILURE, tags=THEIRS)
    add_run(instance, dg.DagsterRunStatus.FAILURE)

    runs = latest_ended_runs(instance, "embed_job", OURS[PIPELINE])

    assert [run.failed for run in runs] == [False, True, True]
    assert abs(runs[0].ended_at - SystemClock().now()) < HOUR
