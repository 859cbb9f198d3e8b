"""The graph's state machine, bound to Neo4j."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import GraphBackend
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.graph_machine import GraphMachine
from embed_pipeline_tests.stores.neo4j_graph import Neo4jGraphBackend, empty

RUNS = [5, pytest.param(15, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.stress)]


@pytest.mark.parametrize("runs", RUNS)
def test_labels_are_what_the_properties_say_after_an_audit(
    neo4j_graph: BedServer, runs: int
) -> None:
    class Neo4jGraphMachine(GraphMachine):
        def open_backend(self, clock: FakeClock) -> GraphBackend:
            empty(neo4j_graph)
            self._opened = Neo4jGraphBackend(neo4j_graph, clock)
            return self._opened

        def teardown(self) -> None:
            super().teardown()
            self._opened.close()

    # Fewer and shorter than on SQLite: every step is a handful of round trips.
    run_state_machine_as_test(
        Neo4jGraphMachine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=20,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
