"""Jobs of another program on the newest server: its types are told apart there as well."""

from __future__ import annotations

import pytest

from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores import test_neo4j_foreign_jobs as usual
from embed_pipeline_tests.stores.test_neo4j_foreign_jobs import adopt, queue, store

__all__ = ["adopt", "neo4j_queue", "queue", "store"]

pytestmark = pytest.mark.slow

# All that are bound there, so that none is forgotten here.
globals().update({name: bound for name, bound in vars(usual).items() if name.startswith("Test")})


@pytest.fixture
def neo4j_queue(neo4j_swapped_queue: BedServer) -> BedServer:
    return neo4j_swapped_queue
