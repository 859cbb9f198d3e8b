"""embed_queue_sensor: it launches only when there is something to do, else it says why not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from embed_pipeline.defs.polling import SensorCheckFailed
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.domain.window import Spent
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline_tests.clocks import DAY, FakeClock
from embed_pipeline_tests.defs.conftest import Build
from embed_pipeline_tests.defs.scene import MODEL, Pipeline

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

SENSOR = "embed_queue_sensor"
NO_ANSWER = FailureRecord(
    category=ErrorCategory.TRANSIENT, error_type="Timeout", message="no answer in time"
)


def launches(pipeline: Pipeline, instance: dg.DagsterInstance) -> int:
    with pipeline.tick(SENSOR, instance) as result:
        return len(result.run_requests or [])


def reason(pipeline: Pipeline, instance: dg.DagsterInstance) -> str:
    with pipeline.tick(SENSOR, instance) as result:
        assert not result.run_requests
        return str(result.skip_message)


def test_due_job_launches_one_run_with_its_trigger(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")

    with pipeline.tick(SENSOR, instance) as result:
        (request,) = result.run_requests

    assert request.run_key is None  # a key would be launched once and never again
    assert request.tags["embed_pipeline/trigger"] == "queue"


def test_nothing_pending(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    assert reason(pipeline, instance) == "nothing is pending"


def test_not_due_before_its_time(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    pipeline.create("a")
    jobs = pipeline.services.jobs
    lease = jobs.lease(owner="w", model=MODEL, limit=1, token="t")
    jobs.defer(lease, lease.job_ids, error=NO_ANSWER, delay=timedelta(hours=1))
    due = jobs.next_due(model=MODEL)

    assert due is not None
    assert reason(pipeline, instance) == f"nothing is due before {due:%H:%M:%S} UTC"


def test_paused_and_halted(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    pipeline.create("a")

    pipeline.services.jobs.switch.pause("maintenance")
    paused = reason(pipeline, instance)
    pipeline.services.jobs.switch.halt("the key was revoked", seen=0)
    halted = reason(pipeline, instance)

    assert paused == "paused: maintenance; resume it to go on"
    assert halted == "halted: the key was revoked; resume it to go on"


@pytest.mark.parametrize("name", ["mock", "graph"])
def test_open_breaker_with_the_time_of_the_next_try(
    pipeline: Pipeline, instance: dg.DagsterInstance, name: str
) -> None:
    pipeline.create("a")
    breakers = pipeline.services.jobs.breakers
    for _ in range(5):  # so that its pause outlasts the test
        breaker = breakers.trip(name, seen=breakers.read(name).generation, error=NO_ANSWER)

    assert breaker.until is not None
    assert reason(pipeline, instance) == (
        f"{name} does not answer (no answer in time); next try at {breaker.until:%H:%M:%S} UTC"
    )


def test_spent_budget_with_the_time_it_is_back(build: Build, instance: dg.DagsterInstance) -> None:
    pipeline = build(EMBEDDING_RATE_LIMIT_TOKENS="1", EMBEDDING_RATE_LIMIT_INTERVAL="3600000")
    pipeline.create("a")
    pipeline.services.limiter.take(Spent(requests=1))
    back_at = pipeline.services.limiter.allowance().back_at

    assert back_at is not None
    assert reason(pipeline, instance) == f"the budget is used up; back at {back_at:%H:%M:%S} UTC"


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
def test_enough_unfinished_runs(
    pipeline: Pipeline, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    pipeline.create("a")
    pipeline.add_run(instance, status)
    with_one = launches(pipeline, instance)
    pipeline.add_run(instance, status)

    assert with_one == 1
    assert reason(pipeline, instance) == "2 embed runs are working; the limit is 2"


@pytest.mark.parametrize(
    "status",
    [
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
    ],
)
def test_run_that_has_not_begun_will_take_what_is_due(
    pipeline: Pipeline, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    pipeline.create("a")
    pipeline.add_run(instance, status)

    assert reason(pipeline, instance) == "an embed run is starting"


def test_finished_runs_and_other_jobs_are_not_counted(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    for status in (
        dg.DagsterRunStatus.SUCCESS,
        dg.DagsterRunStatus.FAILURE,
        dg.DagsterRunStatus.CANCELED,
    ):
        pipeline.add_run(instance, status)
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED, job="discover_job")
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED, job="discover_job")

    assert launches(pipeline, instance) == 1


@pytest.fixture
def a_minute_later(pipeline: Pipeline) -> None:
    """For the sensor: every run that was created before now has had its time to arrive."""
    pipeline.change_queue(run_arrival=timedelta(minutes=-1))


@pytest.mark.usefixtures("a_minute_later")
def test_runs_that_died_without_dagster_knowing_do_not_freeze_the_queue(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED)
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED)
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTING)

    assert launches(pipeline, instance) == 1


@pytest.mark.usefixtures("a_minute_later")
def test_runs_that_wait_for_their_turn_are_not_piled_up(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED)
    with_one = launches(pipeline, instance)
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED)

    assert with_one == 1
    assert reason(pipeline, instance) == "2 embed runs are waiting to start; the limit is 2"


@pytest.fixture
def a_day_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the sensor: every run is older than its `max_runtime`."""
    tomorrow = FakeClock(SystemClock().now() + DAY)
    monkeypatch.setattr("embed_pipeline.defs.embed.queue_sensor.SystemClock", lambda: tomorrow)


@pytest.mark.usefixtures("a_day_later")
def test_queued_runs_count_whatever_their_age_and_others_do_not(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    for status in (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED):
        pipeline.add_run(instance, status)
        pipeline.add_run(instance, status)
    with_dead_ones = launches(pipeline, instance)
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED)
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED)

    assert with_dead_ones == 1
    assert reason(pipeline, instance) == "2 embed runs are waiting to start; the limit is 2"


@pytest.mark.usefixtures("a_day_later")
def test_run_that_waits_and_one_that_works_are_two(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a", "b")
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED)
    pipeline.services.jobs.lease(owner="cli", model=MODEL, limit=1, token="t")

    assert reason(pipeline, instance) == "2 embed runs are working; the limit is 2"


def test_limit_of_runs_is_the_setting(build: Build, instance: dg.DagsterInstance) -> None:
    pipeline = build(EMBED_MAX_RUNS="3")
    pipeline.create("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED)
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED)
    with_two = launches(pipeline, instance)
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED)

    assert with_two == 1
    assert reason(pipeline, instance) == "3 embed runs are working; the limit is 3"


def test_runs_that_fail_one_after_the_other_make_the_next_one_wait(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.FAILURE)
    after_one = launches(pipeline, instance)
    latest = pipeline.add_run(instance, dg.DagsterRunStatus.FAILURE)
    after_two = reason(pipeline, instance)
    pipeline.add_run(instance, dg.DagsterRunStatus.SUCCESS)

    assert after_one == 1
    assert after_two.startswith(f"the last 2 embed runs failed (latest: {latest.run_id}); next try")
    assert launches(pipeline, instance) == 1


@pytest.mark.usefixtures("a_day_later")
def test_failing_runs_are_tried_again_when_the_pause_is_over(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    for _ in range(9):
        pipeline.add_run(instance, dg.DagsterRunStatus.FAILURE)

    assert launches(pipeline, instance) == 1


@pytest.mark.usefixtures("a_minute_later")
def test_run_that_holds_leases_is_at_work_however_old(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a", "b", "c")
    for _ in range(2):
        run = pipeline.add_run(instance, dg.DagsterRunStatus.STARTED)
        pipeline.services.jobs.lease(owner=run.run_id, model=MODEL, limit=1, token=run.run_id)

    assert reason(pipeline, instance) == "2 embed runs are working; the limit is 2"


def test_enough_live_owners_outside_dagster(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a", "b", "c")
    for owner in ("cli-1", "cli-2"):
        pipeline.services.jobs.lease(owner=owner, model=MODEL, limit=1, token=owner)

    assert reason(pipeline, instance) == "2 embed runs are working; the limit is 2"


def test_unusable_queue_fails_the_tick_with_one_sentence(
    pipeline: Pipeline, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "queue.sqlite").write_bytes(b"no database at all" * 500)

    with pytest.raises(SensorCheckFailed) as caught, pipeline.tick(SENSOR, instance):
        pass

    assert str(caught.value).endswith("queue.sqlite is not a SQLite database.")
    assert "\n" not in str(caught.value)
