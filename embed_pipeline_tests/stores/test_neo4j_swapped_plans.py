"""The kept plans with the versions exchanged."""

from __future__ import annotations

import pytest

from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.test_neo4j_plans import (
    test_entities_are_found_the_same_way_in_an_empty_graph_and_in_a_full_one,
    test_jobs_are_found_the_same_way_in_an_empty_queue_and_in_a_full_one,
)

__all__ = [
    "test_entities_are_found_the_same_way_in_an_empty_graph_and_in_a_full_one",
    "test_jobs_are_found_the_same_way_in_an_empty_queue_and_in_a_full_one",
]

pytestmark = pytest.mark.slow


@pytest.fixture
def queue_server(neo4j_swapped_queue: BedServer) -> BedServer:
    return neo4j_swapped_queue


@pytest.fixture
def graph_server(neo4j_swapped_graph: BedServer) -> BedServer:
    return neo4j_swapped_graph
