"""The vector index on the long-term release, which has neither SEARCH nor filters inside."""

from __future__ import annotations

import pytest

from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.test_neo4j_vector_index import (
    TestDoctor,
    TestFilters,
    TestReplacing,
    TestWhileItIsBuilt,
    backend,
    by_index,
    filters_inside,
    setup,
    store,
)

__all__ = [
    "TestDoctor",
    "TestFilters",
    "TestReplacing",
    "TestWhileItIsBuilt",
    "backend",
    "by_index",
    "filters_inside",
    "setup",
    "store",
]

pytestmark = pytest.mark.slow


@pytest.fixture
def server(neo4j_swapped_graph: BedServer) -> BedServer:
    return neo4j_swapped_graph
