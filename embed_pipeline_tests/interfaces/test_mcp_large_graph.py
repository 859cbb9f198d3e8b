"""On a graph of 100 000 entities a repair costs what its limit says, not what the graph holds."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embed_pipeline.interfaces.mcp.server import server_for
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.mcp_client import Conversation, talk_to
from embed_pipeline_tests.interfaces.mcp_scene import FORCE, park

ENTITIES = 100_000
MEGABYTE = 1024 * 1024


class Counting:
    """Another store's methods, and how often each was called."""

    def __init__(self, store: object) -> None:
        self._store, self.calls = store, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return found(*args, **kwargs)

        return counted


@pytest.fixture
def crowd(services: Services, home: Path) -> Services:
    """Tens of megabytes of entities without a vector, made inside the database."""
    services.graph.probe()  # the file is made on first use
    with closing(sqlite3.connect(home / "graph.sqlite")) as connection, connection:
        connection.execute(
            f"""
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ENTITIES})
            INSERT INTO Entity (uid, name, needs_embedding, observations)
            SELECT printf('e%06d', i), 'entity ' || i, i % 2, hex(randomblob(100)) FROM n
            """
        )
    return services


@pytest.fixture
def graph(crowd: Services) -> Counting:
    return Counting(crowd.graph)


@pytest.fixture
def queue(crowd: Services) -> Counting:
    return Counting(crowd.jobs)


@pytest.fixture
def agent(crowd: Services, graph: Counting, queue: Counting) -> Iterator[Conversation]:
    counted: Any = {"graph": graph, "jobs": queue}
    with talk_to(server_for(replace(crowd, **counted))) as conversation:
        yield conversation


def peak_of(agent: Conversation, **arguments: Any) -> int:
    """The most memory that Python held during a call; tracing costs time, so not for the setup."""
    tracemalloc.start()
    try:
        answer = agent.call(FORCE, **arguments)
        assert not answer.is_error
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_repair_is_one_page_however_large_the_graph(
    agent: Conversation, graph: Counting, queue: Counting
) -> None:
    answer = agent.call(FORCE, limit=50)

    assert answer.facts["queued"] == 50
    assert graph.calls == {
        "register_first_model": 1,
        "entities_without_embeddings": 1,
        "embedded_versions": 1,
        "exchange_markers": 1,
    }
    assert queue.calls == {"enqueue": 1}


def test_queries_follow_the_pages_that_were_walked(
    agent: Conversation, graph: Counting, queue: Counting, crowd: Services, home: Path
) -> None:
    with closing(sqlite3.connect(home / "graph.sqlite")) as connection, connection:
        connection.execute("UPDATE Entity SET needs_embedding = 0")
    park(crowd, *(f"a parked {n:02}" for n in range(30)))

    answer = agent.call(FORCE, limit=10)

    pages = 3 + 1  # of ten: three with parked ones only, then the one that fills the limit
    assert (answer.facts["queued"], answer.facts["discovered"]) == (10, 40)
    assert graph.calls["entities_without_embeddings"] == pages
    assert graph.calls["embedded_versions"] == queue.calls["enqueue"] == pages


def test_memory_follows_the_limit_and_not_the_graph(agent: Conversation) -> None:
    agent.call(FORCE, limit=1)  # what is made once is not the call's

    ten, thousand = peak_of(agent, limit=10), peak_of(agent, limit=1_000)

    assert ten < 1 * MEGABYTE
    assert thousand < 10 * MEGABYTE


def test_named_entity_is_read_alone(agent: Conversation, graph: Counting) -> None:
    assert peak_of(agent, entity_name="entity 77777") < 1 * MEGABYTE

    assert graph.calls == {"find_by_name": 1, "register_first_model": 1}
