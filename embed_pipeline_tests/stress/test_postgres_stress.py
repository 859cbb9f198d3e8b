"""Long hammers on PostgreSQL; `make stress` runs them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from embed_pipeline.stores.config import Server
from embed_pipeline_tests.stores import queue_races
from embed_pipeline_tests.stores.postgres_queue import open_jobs, own_schema
from embed_pipeline_tests.stress.hammer import POLICY, hammer

pytestmark = pytest.mark.stress


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    with own_schema(postgres_url) as server:
        yield server


def test_a_million_jobs_are_leased_once_each(server: Server) -> None:
    queue_races.lease_everything_once(partial(open_jobs, server), count=1_000_000, batch=250)


def test_a_minute_of_crashes_and_late_workers_completes_every_job_exactly_once(
    server: Server, tmp_path: Path
) -> None:
    opener = partial(open_jobs, server, policy=POLICY)

    outcome = hammer(opener, seconds=60, folder=tmp_path, seed=1)

    assert outcome.defects == []
