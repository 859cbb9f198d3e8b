"""Long hammers on SQLite; `make stress` runs them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from embed_pipeline_tests.stores import queue_races
from embed_pipeline_tests.stores.sqlite_queue import open_jobs
from embed_pipeline_tests.stores.test_sqlite_machine import SqliteQueueMachine
from embed_pipeline_tests.stress.hammer import POLICY, hammer

pytestmark = pytest.mark.stress


def test_a_million_jobs_are_leased_once_each(tmp_path: Path) -> None:
    opener = partial(open_jobs, tmp_path / "queue.sqlite")

    queue_races.lease_everything_once(opener, count=1_000_000, batch=250)


def test_a_minute_of_crashes_and_late_workers_completes_every_job_exactly_once(
    tmp_path: Path,
) -> None:
    opener = partial(open_jobs, tmp_path / "queue.sqlite", policy=POLICY)

    outcome = hammer(opener, seconds=60, folder=tmp_path, seed=1)

    assert outcome.defects == []


TestLongQueueMachine = SqliteQueueMachine.TestCase
TestLongQueueMachine.settings = settings(
    max_examples=2_000,
    stateful_step_count=60,
    suppress_health_check=list(HealthCheck),
)
