"""The queue's state machine, bound to SQLite."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.stores.queue_machine import QueueMachine
from embed_pipeline_tests.stores.sqlite_queue import SqliteQueueBackend


class SqliteQueueMachine(QueueMachine):
    def open_store(self, clock: FakeClock) -> JobStore:
        self._folder = tempfile.TemporaryDirectory()
        self._backend = SqliteQueueBackend(Path(self._folder.name) / "queue.sqlite", clock)
        return self._backend.open_store()

    def teardown(self) -> None:
        self._backend.close()
        self._folder.cleanup()


@pytest.mark.parametrize("runs", [15, pytest.param(60, marks=pytest.mark.slow)])
def test_queue_and_model_agree_whatever_is_done(runs: int) -> None:
    run_state_machine_as_test(
        SqliteQueueMachine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=40,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
