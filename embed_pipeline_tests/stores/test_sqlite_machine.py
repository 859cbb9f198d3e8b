"""The queue's state machine, bound to SQLite."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

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


TestQueueMachine = SqliteQueueMachine.TestCase
TestQueueMachine.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
