"""The whole pipeline on two real Neo4j servers: one for the queue, one for the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from neo4j.exceptions import Neo4jError

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.stores.neo4j.driver.database import Row, Tx
from embed_pipeline.usecases.entities.create import CreateReport, create_entities, upsert_entities
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.neo4j_bed.client import BedServer

COUNT_JOBS = "MATCH (job:EmbedJob) RETURN count(job) AS found"
COUNT_ENTITIES = "MATCH (entity:Entity) RETURN count(entity) AS found"

PICTURE = """
MATCH (node)
RETURN elementId(node) AS place, labels(node) AS labels, properties(node) AS properties,
       [(node)-[r]->(other) | [type(r), properties(r), elementId(other)]] AS relationships
ORDER BY place
"""


@pytest.fixture
def settings(tmp_path: Path, neo4j_queue: BedServer, neo4j_graph: BedServer) -> Settings:
    neo4j_queue.wipe()
    neo4j_graph.wipe()
    return load_settings(
        server_variables(neo4j_queue, neo4j_graph)
        | {
            "EMBED_ENV": "test",
            "EMBED_HOME": str(tmp_path),
            "EMBED_STORE": "neo4j",
            "EMBEDDING_RATE_LIMIT_TOKENS": "100",
        }
    )


@pytest.fixture
def services(settings: Settings) -> Iterator[Services]:
    wiring.initialise_stores(settings)
    opened = wiring.open_services(settings)
    with ExitStack() as stack:
        for part in (opened.jobs, opened.graph, opened.limiter):
            stack.enter_context(closing(part))
        yield opened


def entities(count: int) -> list[NewEntity]:
    return [NewEntity(name=f"entity {number}", entity_type="Thing") for number in range(count)]


def count(server: BedServer, statement: str) -> int:
    return int(server.run(statement)[0]["found"])


def test_missing_schema_names_the_command(settings: Settings, neo4j_queue: BedServer) -> None:
    neo4j_queue.wipe_schema()

    with (
        closing(wiring.open_job_store(settings)) as jobs,
        pytest.raises(SchemaMissing, match="embed-pipeline init"),
    ):
        jobs.get_queue_status()


def test_jobs_and_entities_never_share_a_database(
    services: Services, neo4j_queue: BedServer, neo4j_graph: BedServer
) -> None:
    create_entities(services.jobs, services.graph, entities(30), model=services.model)

    tally = drain(services, owner="run-1")

    assert (tally.embedded, coverage_of(services.graph, model=services.model).percent) == (30, 100)
    assert (count(neo4j_queue, COUNT_JOBS), count(neo4j_queue, COUNT_ENTITIES)) == (30, 0)
    assert (count(neo4j_graph, COUNT_JOBS), count(neo4j_graph, COUNT_ENTITIES)) == (0, 30)


def test_twenty_callers_create_fifty_entities_each_without_lock_timeouts(
    services: Services,
    neo4j_queue: BedServer,
    neo4j_graph: BedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = codes_of_refusals(monkeypatch)
    starting_line = Barrier(20)

    def create(caller: int) -> CreateReport:
        # All callers share every second entity, and each names them in another order.
        mine = [NewEntity(name=f"entity {caller} {n}") for n in range(25)]
        shared = [NewEntity(name=f"shared {(n + caller) % 25}") for n in range(25)]
        starting_line.wait()
        return create_entities(
            services.jobs, services.graph, [*mine, *shared], model=services.model
        )

    with ThreadPoolExecutor(20) as callers:
        reports = list(callers.map(create, range(20)))

    assert all(report.queued for report in reports)
    assert sum(report.created for report in reports) == 20 * 25 + 25
    assert count(neo4j_graph, COUNT_ENTITIES) == count(neo4j_queue, COUNT_JOBS) == 20 * 25 + 25
    assert not [code for code in refused if "LockAcquisitionTimeout" in code]


def codes_of_refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of every statement that a server refuses, also those that the driver tries again."""
    codes: list[str] = []
    run = Tx.all

    def watched(self: Tx, statement: str, /, **parameters: object) -> list[Row]:
        try:
            return run(self, statement, **parameters)
        except Neo4jError as error:
            codes.append(error.code or "")
            raise

    monkeypatch.setattr(Tx, "all", watched)
    return codes


def test_search_finds_an_entity_by_its_own_text(services: Services) -> None:
    create_entities(services.jobs, services.graph, entities(20), model=services.model)
    drain(services, owner="run-1")

    result = search(services, "entity 7\nThing", limit=1)

    assert isinstance(services.provider, MockProvider)
    assert [hit.entity.name for hit in result.hits] == ["entity 7"]
    assert (result.searchable, result.entities) == (20, 20)


def test_dropped_queue_is_rebuilt_and_changed_entities_land(
    services: Services, settings: Settings, neo4j_queue: BedServer, neo4j_graph: BedServer
) -> None:
    create_entities(services.jobs, services.graph, entities(10), model=services.model)
    drain(services, owner="run-1")
    neo4j_graph.run(
        "MATCH (a:Entity {name: 'entity 1'}), (b:Entity {name: 'entity 2'}) "
        "CREATE (a)-[:KNOWS {since: 1840}]->(b), (:Theirs {updatedAt: 1}) SET a:Mine, a.born = 1815"
    )
    upsert_entities(
        services.jobs,
        services.graph,
        [NewEntity(name="entity 3", entity_type="Thing", properties={"observations": ("new",)})],
        model=services.model,
    )
    before = neo4j_graph.run(PICTURE)
    neo4j_queue.wipe_schema()
    wiring.initialise_stores(settings)

    rebuilt = neo4j_graph.run(PICTURE)
    report = discover(services)
    tally = drain(services, owner="run-2")

    assert rebuilt == before
    assert (report.new_jobs, tally.embedded) == (1, 1)
    coverage = coverage_of(services.graph, model=services.model)
    assert (coverage.embedded, coverage.stale) == (10, 0)
    after = neo4j_graph.run(PICTURE)
    assert [node for node in after if not is_changed(node)] == [
        node for node in before if not is_changed(node)
    ]


def is_changed(node: Mapping[str, Any]) -> bool:
    """By our own doing: the entity with the new text, and nodes that are ours."""
    is_ours = any(label.startswith("Embedding") for label in node["labels"])
    return is_ours or node["properties"].get("name") == "entity 3"
