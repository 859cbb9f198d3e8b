"""The queue contracts on the newest server, without APOC: the versions exchanged."""

from __future__ import annotations

import pytest

from embed_pipeline_tests.contracts.binding import QUEUE_CONTRACTS, bind
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores.neo4j_queue import prepared
from embed_pipeline_tests.stores.test_neo4j_jobs import TestCleaning, backend, store

__all__ = ["TestCleaning", "backend", "queue_server", "store"]

pytestmark = pytest.mark.slow

bind(globals(), QUEUE_CONTRACTS)


@pytest.fixture(scope="module")
def queue_server(neo4j_swapped_queue: BedServer) -> Address:
    return prepared(neo4j_swapped_queue)


def test_this_server_has_no_apoc(neo4j_swapped_queue: BedServer) -> None:
    found = neo4j_swapped_queue.run(
        "SHOW PROCEDURES YIELD name WHERE name STARTS WITH 'apoc.' RETURN name"
    )

    assert found == []
