"""The queue contracts on the newest server, without APOC: the versions exchanged."""

from __future__ import annotations

import pytest

from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores import test_neo4j_jobs as usual
from embed_pipeline_tests.stores.neo4j_queue import prepared
from embed_pipeline_tests.stores.test_neo4j_jobs import backend, store

__all__ = ["backend", "queue_server", "store"]

# All that are bound there, so that none is forgotten here.
globals().update({name: bound for name, bound in vars(usual).items() if name.startswith("Test")})


@pytest.fixture(scope="module")
def queue_server(neo4j_swapped_queue: BedServer) -> Address:
    return prepared(neo4j_swapped_queue)


def test_this_server_has_no_apoc(neo4j_swapped_queue: BedServer) -> None:
    found = neo4j_swapped_queue.run(
        "SHOW PROCEDURES YIELD name WHERE name STARTS WITH 'apoc.' RETURN name"
    )

    assert found == []
