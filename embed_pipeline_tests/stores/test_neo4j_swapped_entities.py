"""The entity-store contracts on the long-term release, which speaks Bolt 5: versions exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline_tests import contracts
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores import test_neo4j_entities as usual
from embed_pipeline_tests.stores.neo4j_graph import Neo4jGraphBackend, database_of, empty
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


def test_this_server_takes_vectors_only_as_lists(neo4j_swapped_graph: BedServer) -> None:
    database = database_of(neo4j_swapped_graph)

    assert not database.speaks_vectors
    database.close()
