"""Real Neo4j servers for the stores' tests; started only when a test asks for one."""

from __future__ import annotations

from embed_pipeline_tests.neo4j_bed.fixtures import (
    neo4j_graph,
    neo4j_queue,
    neo4j_servers,
    neo4j_swapped_graph,
    neo4j_swapped_queue,
    neo4j_swapped_servers,
    neo4j_swapped_turn,
    neo4j_turn,
)

__all__ = [
    "neo4j_graph",
    "neo4j_queue",
    "neo4j_servers",
    "neo4j_swapped_graph",
    "neo4j_swapped_queue",
    "neo4j_swapped_servers",
    "neo4j_swapped_turn",
    "neo4j_turn",
]
