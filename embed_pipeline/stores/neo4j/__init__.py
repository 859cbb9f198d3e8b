"""The production backend: two Neo4j databases, one for the queue, one for the graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from embed_pipeline.domain.check import CheckResult
from embed_pipeline.domain.policy import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores.config import Server, StoreConfig
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.neo4j.driver.database import (
    CONNECT_TIMEOUT,
    RETRY_TIME,
    SHORT_TIMEOUT,
    Neo4jDatabase,
)
from embed_pipeline.stores.neo4j.graph.backend import Neo4jGraph
from embed_pipeline.stores.neo4j.queue.adoption import sentences_on_jobs_left
from embed_pipeline.stores.neo4j.queue.backend import QueueDatabase
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.queue.rate_limiter import Neo4jRateLimiter
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline.stores.neo4j.setup.doctor import diagnose_database


class Neo4jQueue:
    def __init__(self, database: QueueDatabase, *, policy: QueuePolicy) -> None:
        self._database = database
        self.jobs = Neo4jJobStore(database, policy=policy)

    def limiter(self, *, provider: str, limit: RateLimit) -> Neo4jRateLimiter:
        return Neo4jRateLimiter(self._database, provider=provider, limit=limit)


def open_queue(config: StoreConfig) -> Neo4jQueue:
    database = _database(config.queue, config, check=schema.confirm_queue)
    return Neo4jQueue(QueueDatabase(database, clock=config.clock), policy=config.policy)


def open_graph(config: StoreConfig) -> GraphEntityStore:
    check = partial(schema.confirm_graph, mapping=config.mapping)
    database = _database(config.graph, config, check=check)
    return GraphEntityStore(Neo4jGraph(database, mapping=config.mapping))


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
        entities = Neo4jGraph(graph, mapping=config.mapping)
        for record in entities.read(lambda tx: tx.models()):
            entities.ensure_indexes(record)
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
