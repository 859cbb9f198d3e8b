"""A real Neo4j server for the long hammers."""

from __future__ import annotations

from embed_pipeline_tests.neo4j_bed.fixtures import (
    neo4j_graph,
    neo4j_queue,
    neo4j_servers,
    neo4j_turn,
)

__all__ = ["neo4j_graph", "neo4j_queue", "neo4j_servers", "neo4j_turn"]
