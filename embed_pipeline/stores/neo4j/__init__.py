"""The production backend: two Neo4j databases, one for the queue, one for the graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from embed_pipeline.domain.check import CheckResult
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores.config import Server, StoreConfig
from embed_pipeline.stores.neo4j.driver.database import (
    CONNECT_TIMEOUT,
    RETRY_TIME,
    SHORT_TIMEOUT,
    Neo4jDatabase,
)
from embed_pipeline.stores.neo4j.graph.backend import Graph
from embed_pipeline.stores.neo4j.graph.entity_store import Neo4jEntityStore
from embed_pipeline.stores.neo4j.graph.models import ensure_indexes, read_models
from embed_pipeline.stores.neo4j.queue.adoption import sentences_on_jobs_left
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline.stores.neo4j.setup.doctor import diagnose_database
from embed_pipeline.stores.queue.job_store import OpenQueue


def open_queue(config: StoreConfig) -> OpenQueue:
    database = _database(config.queue, config, check=schema.confirm_queue)
    policy = config.policy
    queue = Neo4jQueue(database, clock=config.clock, max_attempts=policy.max_attempts)
    return OpenQueue(Neo4jJobStore(queue, policy=policy))


def open_graph(config: StoreConfig) -> Neo4jEntityStore:
    check = partial(schema.confirm_graph, mapping=config.mapping)
    database = _database(config.graph, config, check=check)
    return Neo4jEntityStore(database, mapping=config.mapping)


def diagnose(config: StoreConfig) -> list[CheckResult]:
    clock = config.clock or SystemClock()
    queue, graph = _database(config.queue, config), _database(config.graph, config)
    check_graph = partial(schema.check_graph, mapping=config.mapping)
    try:
        return [
            *diagnose_database("queue", queue, check_schema=schema.check_queue, now=clock.now),
            *diagnose_database("graph", graph, check_schema=check_graph, now=clock.now),
        ]
    finally:
        queue.close()
        graph.close()


def initialise(config: StoreConfig) -> list[str]:
    """Constraints and indexes, where they are missing.

    The graph's data is not touched; jobs that another program wrote are made whole.
    """
    queue, graph = _database(config.queue, config), _database(config.graph, config)
    try:
        schema.refuse_shared(queue, graph, config.mapping)
        adopted = schema.prepare_queue(queue, max_attempts=config.policy.max_attempts)
        schema.prepare_graph(graph, config.mapping)
        entities = Graph(graph, mapping=config.mapping)
        for record in entities.read(read_models):
            ensure_indexes(entities, record)
        left = sentences_on_jobs_left(queue)
    finally:
        queue.close()
        graph.close()
    sentences = [
        f"The queue is ready in the database {queue.database} at {queue.uri}.",
        f"The graph is ready in the database {graph.database} at {graph.uri}.",
    ]
    if adopted:
        sentences.append(f"{adopted} jobs of another program were adopted.")
    return sentences + left


def _database(
    server: Server | None,
    config: StoreConfig,
    *,
    check: Callable[[Neo4jDatabase], None] | None = None,
) -> Neo4jDatabase:
    if server is None:
        raise ConfigurationError(["EMBED_QUEUE_URI and EMBED_GRAPH_URI must be set for Neo4j."])
    return Neo4jDatabase(
        server.uri,
        user=server.user,
        password=server.password,
        database=server.database,
        clock=config.clock,
        connect_timeout=SHORT_TIMEOUT if config.fail_fast else CONNECT_TIMEOUT,
        retry_time=SHORT_TIMEOUT if config.fail_fast else RETRY_TIME,
        check=check,
    )
