"""The system alive under load and outages: it keeps up, and comes back by itself."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import dagster as dg
import pytest

from embed_pipeline.stores.sqlite.connection import BUSY_PATIENCE
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.conftest import Print
from embed_pipeline_tests.defs.live import Live, live_system
from embed_pipeline_tests.openai_faults import Fault

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One system for all tests here: it takes longer to start than most of them."""
    with live_system(tmp_path_factory.mktemp("live")) as live, live.dagster():
        yield live


def test_a_thousand_entities_in_ten_seconds_are_embedded_in_at_most_five_runs(
    live: Live, print_line: Print
) -> None:
    runs_before = len(live.runs())
    begun = time.monotonic()

    for page in range(20):
        live.create(f"entity {page}-{number}" for number in range(50))
        threading.Event().wait(0.45)
    created_in = time.monotonic() - begun
    live.wait_until_all_is_embedded(180)

    runs = live.runs()[: len(live.runs()) - runs_before]
    took = time.monotonic() - begun
    print_line(f"created in {created_in:.1f} s, embedded after {took:.1f} s in {len(runs)} runs")
    assert coverage_of(live.services.graph, model=live.services.model).entities >= 1_000
    assert 1 <= len(runs) <= 5
    assert took < 180


def test_provider_that_is_down_fails_no_job_and_is_noticed_when_it_is_back(
    live: Live, print_line: Print
) -> None:
    live.provider.fault_for = lambda _texts: Fault(drop=True)
    live.create(f"during the outage {number}" for number in range(20))
    begun = time.monotonic()
    while not live.services.jobs.breakers.read("openai").level >= 2:
        assert time.monotonic() - begun < 60, live.explain()
        threading.Event().wait(0.2)
    during = live.services.jobs.health.report()

    live.provider.fault_for = None
    back = time.monotonic()
    live.wait_until_all_is_embedded(90)

    print_line(f"provider: all embedded {time.monotonic() - back:.1f} s after it was back")
    kinds = {event.kind for event in live.services.jobs.events.recent(limit=500)}
    assert any("breaker of openai is open" in reason for reason in during.reasons)
    assert {"breaker.opened", "breaker.closed", "health.recovered"} <= kinds
    assert live.services.jobs.health.report().status == "HEALTHY"


def test_queue_locked_by_a_backup_for_longer_than_a_write_waits_loses_nothing(
    live: Live, print_line: Print
) -> None:
    """A run holds jobs meanwhile: it can neither extend nor complete them."""
    live.slow_provider(3)
    live.create(f"before the backup {number}" for number in range(5))
    run_id = live.wait_until_a_run_holds_jobs()
    queue = live.homes.embed / "queue.sqlite"
    with closing(sqlite3.connect(queue, isolation_level=None, timeout=30)) as backup:
        backup.execute("BEGIN IMMEDIATE")
        live.slow_provider(0)
        # The run begins to wait when its answer is there, seconds from now.
        threading.Event().wait(BUSY_PATIENCE + 15)
        backup.execute("ROLLBACK")
    back = time.monotonic()
    live.create(["after the backup"])

    live.wait_until_all_is_embedded(120)

    print_line(f"backup: all embedded {time.monotonic() - back:.1f} s after its end")
    assert live.status_of(run_id) is dg.DagsterRunStatus.FAILURE
    assert "queue.sqlite is locked" in live.log_of(run_id)
    assert live.services.jobs.health.report().status == "HEALTHY"
