"""recover_stale_sensor: at once after a daemon's start, then every interval."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from embed_pipeline.defs.polling import SensorCheckFailed
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline_tests.clocks import DAY, FakeClock
from embed_pipeline_tests.defs.conftest import Build
from embed_pipeline_tests.defs.scene import Pipeline
from embed_pipeline_tests.worker.logbook import recording

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

SENSOR = "recover_stale_sensor"


class SensorClock(FakeClock, SystemClock):
    """Starts at the real time, so that expired leases stay expired."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SensorClock:
    clock = SensorClock(SystemClock().now())
    monkeypatch.setattr("embed_pipeline.defs.embed.recovery_sensors.SystemClock", lambda: clock)
    return clock


def daemon_starts(instance: dg.DagsterInstance, daemon_id: str) -> None:
    instance.add_daemon_heartbeat(
        DaemonHeartbeat(
            timestamp=SystemClock().now().timestamp(),
            daemon_type="SENSOR",
            daemon_id=daemon_id,
            errors=[],
        )
    )


class Ticks:
    """Ticks of one sensor, each with the cursor that the one before left."""

    def __init__(self, pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
        self._pipeline, self._instance = pipeline, instance
        self.cursor: str | None = None

    def next(self) -> int | str:
        """How many runs it launches, or why none."""
        with self._pipeline.tick(SENSOR, self._instance, self.cursor) as result:
            self.cursor = result.cursor or self.cursor
            return len(result.run_requests or []) or str(result.skip_message)


@pytest.fixture
def ticks(pipeline: Pipeline, instance: dg.DagsterInstance, clock: SensorClock) -> Ticks:
    daemon_starts(instance, "first")
    return Ticks(pipeline, instance)


def test_first_tick_after_a_daemons_start_recovers_at_once(
    ticks: Ticks, pipeline: Pipeline, clock: SensorClock, instance: dg.DagsterInstance
) -> None:
    pipeline.abandon("e1")

    at_start, soon = ticks.next(), ticks.next()
    daemon_starts(instance, "second")
    after_restart = ticks.next()

    next_check = clock.now() + timedelta(minutes=1)
    assert (at_start, after_restart) == (1, 1)
    assert soon == f"the next check is at {next_check:%H:%M:%S} UTC"


def test_then_it_recovers_every_interval(
    ticks: Ticks, pipeline: Pipeline, clock: SensorClock
) -> None:
    pipeline.abandon("e1")
    ticks.next()

    clock.advance(timedelta(seconds=59))
    before = ticks.next()
    clock.advance(timedelta(seconds=1))
    due = ticks.next()
    again = ticks.next()

    assert isinstance(before, str)
    assert due == 1
    assert isinstance(again, str)


def test_check_that_finds_nothing_says_zero_and_counts_as_a_check(ticks: Ticks) -> None:
    assert ticks.next() == "0 jobs recovered: no lease has expired"
    assert str(ticks.next()).startswith("the next check is at")


def test_check_that_a_wrong_clock_put_in_the_future_freezes_nothing(
    ticks: Ticks, pipeline: Pipeline, clock: SensorClock
) -> None:
    clock.advance(DAY)
    ticks.next()
    clock.advance(-DAY)
    pipeline.abandon("e1")

    assert ticks.next() == 1
    assert str(ticks.next()).startswith("the next check is at")


def test_live_lease_launches_nothing(ticks: Ticks, pipeline: Pipeline) -> None:
    pipeline.create("a")
    pipeline.services.jobs.lease(owner="w", model=pipeline.services.model, limit=1, token="t")

    assert str(ticks.next()).startswith("0 jobs recovered")


def test_interval_is_the_setting(build: Build, instance: dg.DagsterInstance) -> None:
    pipeline = build(EMBED_JOB_RECOVERY_INTERVAL="3600000")
    ticks = Ticks(pipeline, instance)
    ticks.next()
    assert ticks.cursor is not None
    document = json.loads(ticks.cursor)

    ticks.cursor = json.dumps(document | {"at": _earlier(document["at"], minutes=59)})
    early = ticks.next()
    ticks.cursor = json.dumps(document | {"at": _earlier(document["at"], minutes=61)})

    assert str(early).startswith("the next check is at")
    assert str(ticks.next()).startswith("0 jobs recovered")


def _earlier(time: str, *, minutes: int) -> str:
    return (datetime.fromisoformat(time) - timedelta(minutes=minutes)).isoformat()


@pytest.mark.parametrize(
    "cursor", ["garbage", "[]", '{"at": "soon"}', '{"daemon": "first", "at": "2026-01-01"}']
)
def test_unreadable_cursor_is_a_first_tick(ticks: Ticks, pipeline: Pipeline, cursor: str) -> None:
    """The UI lets people edit it."""
    pipeline.abandon("e1")
    ticks.cursor = cursor

    assert ticks.next() == 1


def test_unusable_queue_fails_the_tick_with_one_sentence_and_the_next_tick_checks_again(
    ticks: Ticks, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    queue = tmp_path / "home" / "queue.sqlite"
    queue.write_bytes(b"no database at all" * 500)

    with recording() as logs, pytest.raises(SensorCheckFailed) as caught:
        ticks.next()
    queue.unlink()

    (line,) = logs.of("look.failed")
    assert (line["level"], line["message"]) == ("warning", str(caught.value))
    assert str(caught.value).endswith("queue.sqlite is not a SQLite database.")
    assert "\n" not in str(caught.value)
    assert str(ticks.next()).startswith("0 jobs recovered")


def test_sensor_is_absent_where_recovery_is_off(build: Build) -> None:
    pipeline = build(EMBED_JOB_RECOVERY_INTERVAL="0")

    names = [sensor.name for sensor in pipeline.definitions.sensors or []]

    assert names == ["embed_queue_sensor", "discover_sensor"]


def test_no_second_recovery_is_launched_while_one_is_on_its_way(
    pipeline: Pipeline, instance: dg.DagsterInstance, ticks: Ticks
) -> None:
    pipeline.abandon("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED, job="recover_stale_job")

    assert ticks.next() == "a recovery run is queued or running"


def test_recovery_in_the_run_queue_is_on_its_way_however_long_it_waits(
    pipeline: Pipeline, instance: dg.DagsterInstance, ticks: Ticks, clock: SensorClock
) -> None:
    pipeline.abandon("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED, job="recover_stale_job")
    clock.advance(DAY)

    assert ticks.next() == "a recovery run is queued or running"


def test_recovery_that_died_without_dagster_knowing_does_not_stop_the_next(
    pipeline: Pipeline, instance: dg.DagsterInstance, ticks: Ticks, clock: SensorClock
) -> None:
    pipeline.abandon("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.STARTED, job="recover_stale_job")
    clock.advance(timedelta(minutes=2))

    assert ticks.next() == 1
