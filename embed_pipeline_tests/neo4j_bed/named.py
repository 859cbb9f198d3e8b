"""Servers that the environment names, to be used instead of our own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from neo4j.exceptions import DriverError, Neo4jError

from embed_pipeline_tests.neo4j_bed.jars import locked
from embed_pipeline_tests.neo4j_bed.releases import BedUnavailable, Spec
from embed_pipeline_tests.neo4j_bed.server import Address

if TYPE_CHECKING:
    from embed_pipeline_tests.neo4j_bed.client import BedServer

COUNT_NODES = "MATCH (n) RETURN count(n) AS nodes"


def named_address(spec: Spec) -> Address | None:
    prefix = f"EMBED_TEST_{spec.name.upper()}_"
    uri = os.environ.get(prefix + "URI")
    if not uri:
        return None
    return Address(
        uri=uri,
        user=os.environ.get(prefix + "USER", "neo4j"),
        password=os.environ.get(prefix + "PASSWORD", ""),
        database=os.environ.get(prefix + "DATABASE", spec.database),
    )


def refuse_unless_empty(server: BedServer, *, note: Path) -> None:
    """Tests delete everything, so a server that holds data was named by mistake.

    Only the first process of a session checks; after that the data is the session's own.
    """
    with locked(note.with_suffix(".lock")):
        if note.exists():
            return
        try:
            nodes = server.run(COUNT_NODES)[0]["nodes"]
        except (DriverError, Neo4jError) as error:
            raise BedUnavailable(f"{server.uri} does not answer: {error}") from error
        if nodes:
            raise BedUnavailable(
                f"{server.uri}, database {server.database}, holds {nodes} nodes; "
                "tests would delete them, so it has to be empty"
            )
        note.touch()
