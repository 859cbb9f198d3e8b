"""Crashing, stalling and late workers on one Neo4j queue; `make stress` does it for longer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_queue import DELETE_ALL, open_jobs, prepared
from embed_pipeline_tests.stress.hammer import POLICY, hammer


def hammer_on(server: BedServer, *, seconds: float, folder: Path) -> None:
    address = prepared(server)
    server.run(DELETE_ALL)

    outcome = hammer(
        partial(open_jobs, address, policy=POLICY), seconds=seconds, folder=folder, seed=1
    )

    assert outcome.defects == []


@pytest.mark.slow
def test_crashes_and_late_workers_complete_every_job_exactly_once(
    neo4j_queue: BedServer, tmp_path: Path
) -> None:
    hammer_on(neo4j_queue, seconds=8, folder=tmp_path)
