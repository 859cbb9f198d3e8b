"""A real graph with little memory, and one entity that is too large for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from embed_pipeline.domain.breaker import GRAPH as GRAPH_BREAKER
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.driver.database import SHORT_TIMEOUT, Neo4jDatabase
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline_tests.clocks import HOUR, MINUTE, FakeClock
from embed_pipeline_tests.neo4j_bed import GRAPH, Server
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.recipe import QUICK_BOOT
from embed_pipeline_tests.worker.scene import MODEL, World, entity, uid

COMPANY = 3
LARGE = 8_000_000
LITTLE_MEMORY = {"dbms.memory.transaction.total.max": "10m"}
"""The least that the server can be told."""


@contextmanager
def graph_in(home: Path, **settings: str) -> Iterator[GraphEntityStore]:
    """A server of this test's own, with the data of `home`."""
    server = Server(GRAPH, home=home, java_options=QUICK_BOOT, settings=settings)
    server.start()
    try:
        at = server.address
        database = Neo4jDatabase(
            at.uri,
            user=at.user,
            password=at.password,
            database=at.database,
            retry_time=SHORT_TIMEOUT,
        )
        schema.prepare_graph(database, Collection())
        with closing(GraphEntityStore(Neo4jGraph(database, mapping=Collection()))) as store:
            yield store
    finally:
        server.stop()


@pytest.mark.slow
def test_entity_too_large_for_the_graphs_memory_fails_by_itself_with_the_reason(
    neo4j_graph: BedServer, tmp_path: Path
) -> None:
    if not neo4j_graph.can_be_stopped:
        pytest.skip("the environment names the servers, so no others are started")
    world = World(tmp_path, FakeClock())
    with graph_in(tmp_path / "neo4j") as graph:
        entities = [entity(0, "x" * LARGE), *map(entity, range(1, 1 + COMPANY))]
        create_entities(world.jobs, graph, entities, model=MODEL)

    with graph_in(tmp_path / "neo4j", **LITTLE_MEMORY) as graph:
        services = replace(world.services, graph=graph)
        run_until_empty(
            services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
        )
        stored = graph.embedded_versions(list(map(uid, range(1 + COMPANY))), model=MODEL)

    assert len(stored) == COMPANY
    failed = world.job_of(uid(0))
    assert (failed.status, failed.attempts) == (JobStatus.FAILED, failed.max_attempts)
    assert "no memory for this entity" in (failed.error or "")
    others = [job for job in world.all_jobs if job.entity_uid != uid(0)]
    assert {(job.status, job.attempts) for job in others} == {(JobStatus.COMPLETED, 0)}
    assert len(others) == COMPANY
    assert world.jobs.breakers.read(GRAPH_BREAKER).generation == 0, "no run had to wait"
    world.close()
