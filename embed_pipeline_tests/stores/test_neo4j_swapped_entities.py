"""The entity-store contracts on the long-term release, which speaks Bolt 5: versions exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.domain.collection import Collection
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.stores.neo4j.graph import cypher
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.binding import GRAPH_CONTRACTS, bind
from embed_pipeline_tests.contracts.entity_store.scene import vector
from embed_pipeline_tests.contracts.entity_store.search import embed_with
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_graph import Neo4jGraphBackend, empty
from embed_pipeline_tests.stores.neo4j_stores import (
    bolt_version,
    kinds_of_vectors,
    statements_sent,
)
from embed_pipeline_tests.stores.test_neo4j_entities import (
    TestDiscoverByWindows,
    TestSearchByIndex,
    second,
    store,
)

__all__ = ["TestDiscoverByWindows", "TestSearchByIndex", "backend", "second", "store"]

pytestmark = pytest.mark.slow

bind(globals(), GRAPH_CONTRACTS)


@pytest.fixture
def backend(neo4j_swapped_graph: BedServer, clock: FakeClock) -> Iterator[Neo4jGraphBackend]:
    empty(neo4j_swapped_graph)
    backend = Neo4jGraphBackend(neo4j_swapped_graph, clock)
    yield backend
    backend.close()


def test_this_server_is_sent_vectors_as_lists(
    neo4j_swapped_graph: BedServer, store: EntityStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = statements_sent(monkeypatch)

    embed_with(store, {1: vector()})

    assert bolt_version(neo4j_swapped_graph) < (6, 0)
    assert kinds_of_vectors(sent) == [list]


def test_this_server_reads_the_newest_nodes_without_sorting_all(
    neo4j_swapped_graph: BedServer,
) -> None:
    query = "EXPLAIN " + filled(cypher.MISSING, Collection())
    with neo4j_swapped_graph.driver.session(database=neo4j_swapped_graph.database) as session:
        plan = session.run(query, after="", size=10, missing=1).consume().plan

    while plan is not None and "NodeByLabelScan" not in plan["children"][0]["operatorType"]:
        plan = plan["children"][0]
    assert plan is not None
    assert plan["operatorType"].startswith("Limit")
