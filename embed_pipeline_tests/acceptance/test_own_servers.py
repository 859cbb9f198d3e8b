"""Servers with settings that the shared ones cannot have: little memory, or no writing.

Each test starts its own, so the file needs no turn at the shared pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from embed_pipeline.domain.breaker import GRAPH as GRAPH_BREAKER
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import ErrorCategory, StoreReadOnly
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.driver.database import SHORT_TIMEOUT, Neo4jDatabase
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline_tests.clocks import HOUR, MINUTE, FakeClock
from embed_pipeline_tests.neo4j_bed import GRAPH
from embed_pipeline_tests.neo4j_bed.fixtures import own_server
from embed_pipeline_tests.worker.scene import MODEL, World, entity, uid

pytestmark = pytest.mark.slow

COMPANY = 3
LITTLE_MEMORY = {"dbms.memory.transaction.total.max": "10m"}
"""The least that the server can be told."""
LARGE = 8_000_000

READ_ONLY = {"server.databases.default_to_read_only": "true"}
ADD_NODE = "CREATE (:Thing)"
COUNT_NODES = "MATCH (n) RETURN count(n) AS nodes"


@contextmanager
def database_in(home: Path, settings: Mapping[str, str]) -> Iterator[Neo4jDatabase]:
    with own_server(GRAPH, home, settings) as at:
        database = Neo4jDatabase(
            at.uri,
            user=at.user,
            password=at.password,
            database=at.database,
            retry_time=SHORT_TIMEOUT,
        )
        with closing(database):
            yield database


@contextmanager
def graph_in(home: Path, settings: Mapping[str, str]) -> Iterator[GraphEntityStore]:
    with database_in(home, settings) as database:
        schema.prepare_graph(database, Collection())
        yield GraphEntityStore(Neo4jGraph(database, mapping=Collection()))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one server after the other: a new one cannot be read-only from its first start on."""
    return tmp_path_factory.mktemp("neo4j")


def test_entity_too_large_for_the_graphs_memory_fails_by_itself_with_the_reason(
    tmp_path: Path, home: Path
) -> None:
    world = World(tmp_path, FakeClock())
    with graph_in(home, {}) as graph:
        entities = [entity(0, "x" * LARGE), *map(entity, range(1, 1 + COMPANY))]
        create_entities(world.jobs, graph, entities, model=MODEL)

    with graph_in(home, LITTLE_MEMORY) as graph:
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


def test_a_read_only_database_is_critical_and_can_be_read(home: Path) -> None:
    if not any(home.iterdir()):
        with own_server(GRAPH, home, {}):
            pass
    with database_in(home, READ_ONLY) as database:
        before = database.read(lambda tx: tx.one(COUNT_NODES))
        with pytest.raises(StoreReadOnly):
            database.write(lambda tx: tx.all(ADD_NODE))
        with pytest.raises(StoreReadOnly) as caught:
            database.autocommit(ADD_NODE)

        assert caught.value.category is ErrorCategory.CRITICAL
        assert database.read(lambda tx: tx.one(COUNT_NODES)) == before
