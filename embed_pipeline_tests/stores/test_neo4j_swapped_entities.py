"""The entity-store contracts on the long-term release, which speaks Bolt 5: versions exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline_tests import contracts
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.entity_store.scene import vector
from embed_pipeline_tests.contracts.entity_store.search import embed_with
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores import test_neo4j_entities as usual
from embed_pipeline_tests.stores.neo4j_graph import Neo4jGraphBackend, empty
from embed_pipeline_tests.stores.neo4j_stores import (
    bolt_version,
    kinds_of_vectors,
    statements_sent,
)
from embed_pipeline_tests.stores.test_neo4j_entities import second, store

__all__ = ["backend", "second", "store"]


def is_bound_contract(bound: object) -> bool:
    return isinstance(bound, type) and any(
        base.__module__.startswith(contracts.__name__) for base in bound.__bases__
    )


# All that are bound there, so that none is forgotten here.
globals().update(
    {
        name: bound
        for name, bound in vars(usual).items()
        if name.startswith("Test") and is_bound_contract(bound)
    }
)


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
