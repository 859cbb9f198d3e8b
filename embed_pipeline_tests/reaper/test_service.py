"""The reaper as a service: every interval, through errors, until stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

from embed_pipeline.reaper import (
    PostgresDatabase,
    Reaper,
    SweepResult,
    in_background,
    stopped_by_signals,
    watch,
)
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.reaper.scene import SECOND, Scene

NOWHERE = "postgresql://127.0.0.1:1/nowhere"


class Rehearsed(Reaper):
    """Takes two seconds per sweep, fails every second one, and stops after six."""

    def __init__(self, clock: FakeClock, stop: threading.Event) -> None:
        super().__init__(PostgresDatabase(NOWHERE))
        self.starts: list[float] = []
        self._fake, self._stop = clock, stop

    def sweep(self, stop: threading.Event | None = None) -> SweepResult:
        self.starts.append(self._fake.monotonic())
        self._fake.advance(2 * SECOND)
        if len(self.starts) == 6:
            self._stop.set()
        if len(self.starts) % 2 == 0:
            raise RuntimeError("a bug")
        return SweepResult(tables=(), duration=2 * SECOND)


def test_watch_sweeps_every_interval_and_survives_errors() -> None:
    clock, stop = FakeClock(), threading.Event()
    reaper = Rehearsed(clock, stop)

    sweeps = watch(reaper, interval=timedelta(seconds=60), stop=stop, clock=clock)

    assert sweeps == 6
    assert reaper.starts == [0, 60, 120, 180, 240, 300]


def test_database_that_is_down_is_logged_and_swept_when_it_is_back(scene: Scene) -> None:
    down = Reaper(PostgresDatabase(NOWHERE)).sweep()

    assert [problem.partition(":")[0] for problem in down.problems] == ["jobs", "asr_jobs"]
    assert "cannot be reached" in down.problems[0]


def test_service_inside_an_application_reaps_in_the_background(scene: Scene) -> None:
    key = scene.processing()

    with in_background(Reaper(PostgresDatabase(scene.url)), interval=timedelta(milliseconds=50)):
        deadline = time.monotonic() + 5
        while scene.row(key)["status"] != "queued":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        late = scene.processing()
        while scene.row(late)["status"] != "queued":
            assert time.monotonic() < deadline
            time.sleep(0.02)


SERVICE = """
import sys
from datetime import timedelta
from embed_pipeline.reaper import PostgresDatabase, Reaper, stopped_by_signals, watch
with stopped_by_signals() as stop:
    print("ready", flush=True)
    sweeps = watch(Reaper(PostgresDatabase(sys.argv[1])), interval=timedelta(hours=1), stop=stop)
print("sweeps", sweeps)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_service_cleanly(scene: Scene, number: signal.Signals) -> None:
    service = subprocess.Popen(
        [sys.executable, "-c", SERVICE, scene.url], stdout=subprocess.PIPE, text=True
    )
    assert service.stdout is not None
    assert service.stdout.readline() == "ready\n"
    time.sleep(0.5)

    service.send_signal(number)
    out, _ = service.communicate(timeout=10)

    assert (service.returncode, out) == (0, "sweeps 1\n")


def test_handlers_are_given_back(scene: Scene) -> None:
    before = signal.getsignal(signal.SIGTERM)

    with stopped_by_signals() as stop:
        assert signal.getsignal(signal.SIGTERM) is not before

    assert signal.getsignal(signal.SIGTERM) is before
    assert not stop.is_set()
