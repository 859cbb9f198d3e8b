"""Every pair of a queue's and a graph's store: prepared, loaded, run, covered, searched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.check import Condition
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.acceptance.production import server_variables
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.postgres_queue import postgres_variables

PAIRS = [
    ("sqlite", "sqlite"),
    ("sqlite", "neo4j"),
    ("neo4j", "sqlite"),
    ("neo4j", "neo4j"),
    ("postgres", "sqlite"),
    ("postgres", "neo4j"),
]


@pytest.fixture(params=PAIRS, ids="-".join)
def settings(
    request: pytest.FixtureRequest, tmp_path: Path, neo4j_queue: BedServer, neo4j_graph: BedServer
) -> Settings:
    queue, graph = request.param
    neo4j_queue.wipe_schema()
    neo4j_graph.wipe_schema()
    variables = server_variables(neo4j_queue, neo4j_graph)
    if queue == "postgres":
        variables |= postgres_variables(request.getfixturevalue("postgres_url"))
    return load_settings(
        variables
        | {
            "EMBED_ENV": "test",
            "EMBED_HOME": str(tmp_path),
            "EMBED_QUEUE_STORE": queue,
            "EMBED_GRAPH_STORE": graph,
            "EMBEDDING_RATE_LIMIT_TOKENS": "100",
            "EMBEDDING_RATE_LIMIT_INTERVAL": "3600000",
        }
    )


@pytest.fixture
def services(settings: Settings) -> Iterator[Services]:
    wiring.initialise_stores(settings)
    opened = wiring.open_services(settings)
    with ExitStack() as stack:
        for part in (opened.jobs, opened.graph, opened.provider, opened.limiter):
            stack.enter_context(closing(part))
        yield opened


def test_the_whole_pipeline_works_on_this_pair(settings: Settings, services: Services) -> None:
    entities = [NewEntity(name=f"entity {number}", entity_type="Thing") for number in range(20)]
    create_entities(services.jobs, services.graph, entities, model=services.model)

    tally = drain(services, owner="run-1")

    found = search(services, "entity 7\nThing", limit=1)
    checks = wiring.diagnose_stores(settings)
    assert (tally.embedded, coverage_of(services.graph, model=services.model).percent) == (20, 100)
    assert [hit.entity.name for hit in found.hits] == ["entity 7"]
    assert services.limiter.allowance().requests == 98, "one for the texts, one for the query"
    assert {check.part for check in checks} >= {"queue", "graph"}
    assert not [check for check in checks if check.condition is Condition.BROKEN]
