"""Neo4j servers as a production one would be: memory that holds the data, compiled code."""

from __future__ import annotations

from pathlib import Path

from embed_pipeline_tests.neo4j_bed import Server
from embed_pipeline_tests.neo4j_bed.releases import Spec


def production_server(
    spec: Spec,
    *,
    home: Path,
    heap: str = "1g",
    page_cache: str = "512m",
    checkpoint_every: str = "15m",
) -> Server:
    settings = {
        "server.memory.pagecache.size": page_cache,
        "db.checkpoint.interval.time": checkpoint_every,
    }
    return Server(spec, home=home, settings=settings, java_options=(f"-Xms{heap}", f"-Xmx{heap}"))
