"""The entity-store contracts on the long-term release, which speaks Bolt 5: versions exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.ports.entity_store import EntityStore
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
