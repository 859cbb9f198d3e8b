"""The graph's state machine, bound to SQLite."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import GraphBackend
from embed_pipeline_tests.stores.graph_machine import GraphMachine
from embed_pipeline_tests.stores.sqlite_graph import SqliteGraphBackend

RUNS = [
    25,
    pytest.param(150, marks=pytest.mark.slow),
    pytest.param(2_500, marks=pytest.mark.stress),
]


class SqliteGraphMachine(GraphMachine):
    def open_backend(self, clock: FakeClock) -> GraphBackend:
        self._folder = tempfile.TemporaryDirectory()
        self._opened = SqliteGraphBackend(Path(self._folder.name) / "graph.sqlite", clock)
        return self._opened

    def teardown(self) -> None:
        super().teardown()
        self._opened.close()
        self._folder.cleanup()


@pytest.mark.parametrize("runs", RUNS)
def test_labels_are_what_the_properties_say_after_an_audit(runs: int) -> None:
    run_state_machine_as_test(
        SqliteGraphMachine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
