"""Long hammers on Neo4j; `make stress` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_queue import DELETE_ALL, open_jobs, prepared
from embed_pipeline_tests.stores.test_neo4j_hammer import hammer_on
from embed_pipeline_tests.stores.test_neo4j_races import lease_everything_once

pytestmark = pytest.mark.stress


def test_a_minute_of_crashes_and_late_workers_completes_every_job_exactly_once(
    neo4j_queue: BedServer, tmp_path: Path
) -> None:
    hammer_on(neo4j_queue, seconds=60, folder=tmp_path)


def test_a_million_jobs_are_leased_once_each(neo4j_queue: BedServer) -> None:
    address = prepared(neo4j_queue)
    neo4j_queue.run(DELETE_ALL)
    store = open_jobs(address)

    lease_everything_once(address, store, count=1_000_000, batch=250)

    store.close()
