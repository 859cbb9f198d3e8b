"""Stores as wiring opens them on the two servers, and what they say to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline import stores
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.stores import neo4j
from embed_pipeline.stores.config import Server, StoreConfig
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline_tests.neo4j_bed.client import BedServer

Statement = tuple[str, dict[str, Any]]
"""With its parameters."""


def server_of(server: BedServer, **changes: str) -> Server:
    given = {name: getattr(server, name) for name in ("uri", "user", "password", "database")}
    return Server(**given | changes)


def config_of(queue: Server, graph: Server) -> StoreConfig:
    return StoreConfig(
        home=Path(), policy=QueuePolicy(), collections=(Collection(),), queue=queue, graph=graph
    )


def initialise(config: StoreConfig) -> list[str]:
    """As `embed-pipeline init` does with both stores in Neo4j."""
    return stores.initialise(neo4j, neo4j, config)


def statements_sent(monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    """Every statement from now on, of any store."""
    sent: list[Statement] = []

    def telling(run: Callable[..., list[Row]]) -> Callable[..., list[Row]]:
        def told(self: object, statement: str, /, **parameters: object) -> list[Row]:
            # Copied, because what is large is let go of once it was sent.
            sent.append((statement, {name: copy(value) for name, value in parameters.items()}))
            return run(self, statement, **parameters)

        return told

    monkeypatch.setattr(Tx, "all", telling(Tx.all))
    monkeypatch.setattr(Neo4jDatabase, "autocommit", telling(Neo4jDatabase.autocommit))
    return sent


def kinds_of_vectors(sent: Sequence[Statement]) -> list[type]:
    """What the vectors travelled as, one by one."""
    return [
        type(row["vector"])
        for statement, parameters in sent
        if "setNodeVectorProperty" in statement
        for row in parameters["rows"]
    ]


def bolt_version(server: BedServer) -> tuple[int, int]:
    """By the tests' own connection."""
    return server.driver.get_server_info().protocol_version
