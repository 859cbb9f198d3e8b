"""Neo4j servers as a production one would be: memory that holds the data, compiled code."""

from __future__ import annotations

from pathlib import Path

from embed_pipeline_tests.neo4j_bed import Server
from embed_pipeline_tests.neo4j_bed.releases import Spec

MEMORY = {"server.memory.pagecache.size": "512m"}
HEAP = ("-Xms1g", "-Xmx1g")


def production_server(spec: Spec, *, home: Path) -> Server:
    return Server(spec, home=home, settings=MEMORY, java_options=HEAP)
