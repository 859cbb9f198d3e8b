"""The queue's state machine, bound to Neo4j."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from embed_pipeline.ports.job_store import JobStore
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores.neo4j_queue import Neo4jQueueBackend, prepared
from embed_pipeline_tests.stores.queue_machine import QueueMachine


@pytest.fixture(scope="module")
def queue_server(neo4j_queue: BedServer) -> Address:
    return prepared(neo4j_queue)


def test_queue_and_model_agree_whatever_is_done(queue_server: Address) -> None:
    class Neo4jQueueMachine(QueueMachine):
        def open_store(self, clock: FakeClock) -> JobStore:
            self._backend = Neo4jQueueBackend(queue_server, clock)
            self._backend.empty()
            return self._backend.open_store()

        def teardown(self) -> None:
            self._backend.close()

    # Fewer and shorter than on SQLite: every step is a handful of round trips.
    run_state_machine_as_test(
        Neo4jQueueMachine,
        settings=settings(
            max_examples=15,
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
