"""Real Neo4j servers for the tests of the whole pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embed_pipeline_tests.acceptance.production import KEY, Production, production_variables
from embed_pipeline_tests.defs.commands import Homes
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.fixtures import (
    neo4j_graph,
    neo4j_queue,
    neo4j_servers,
    neo4j_turn,
)
from embed_pipeline_tests.openai_server import OpenAIServer

__all__ = ["neo4j_graph", "neo4j_queue", "neo4j_servers", "neo4j_turn"]


@pytest.fixture
def production(
    neo4j_queue: BedServer, neo4j_graph: BedServer, tmp_path: Path
) -> Iterator[Production]:
    """Empty servers, prepared as a person prepares them."""
    neo4j_queue.wipe_schema()
    neo4j_graph.wipe_schema()
    with OpenAIServer(api_key=KEY) as openai:
        prepared = Production(
            queue=neo4j_queue,
            graph=neo4j_graph,
            openai=openai,
            homes=Homes.below(tmp_path),
            variables=production_variables(neo4j_queue, neo4j_graph, openai),
        )
        ended = prepared.command("init")
        assert ended.returncode == 0, ended.stderr
        yield prepared
