"""The queue's state machine, bound to PostgreSQL."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.stores.postgres_queue import PostgresQueueBackend, own_schema
from embed_pipeline_tests.stores.queue_machine import QueueMachine


def test_random_calls_keep_the_promises(postgres_url: str) -> None:
    with own_schema(postgres_url) as server:

        class PostgresQueueMachine(QueueMachine):
            def open_store(self, clock: FakeClock) -> JobStore:
                self._backend = PostgresQueueBackend(postgres_url, server, clock)
                return self._backend.open_store()

            def teardown(self) -> None:
                self._backend.close()

        run_state_machine_as_test(
            PostgresQueueMachine,
            settings=settings(
                max_examples=30,
                stateful_step_count=40,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
