"""The Neo4j side of the queue contracts: one server, emptied before each test.

A module prepares the schema once, by `prepared`, and keeps the few nodes that belong to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from embed_pipeline.domain.job import JobId
from embed_pipeline.domain.lease import tier_of
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row, Tx
from embed_pipeline.stores.neo4j.queue.backend import Neo4jQueue
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.neo4j.setup import schema
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address

T = TypeVar("T")

DELETE_ALL = """
MATCH (node) WHERE NOT node:QueueLock AND NOT node:QueueSchema
CALL (node) { DETACH DELETE node } IN TRANSACTIONS OF 5000 ROWS
"""

ALTER_JOB = "MATCH (job:EmbedJob {id: $id}) SET job += $fields"


class WatchedDatabase(Neo4jDatabase):
    """Tells of every transaction that it runs."""

    watcher: Callable[[str], None] = staticmethod(lambda _: None)

    def write(self, work: Callable[[Tx], T], *, timeout: timedelta | None = None) -> T:
        self.watcher("write")
        return super().write(work, timeout=timeout)

    def read(self, work: Callable[[Tx], T]) -> T:
        self.watcher("read")
        return super().read(work)

    def autocommit(self, statement: str, /, **parameters: object) -> list[Row]:
        self.watcher(statement)
        return super().autocommit(statement, **parameters)


def connect(address: Address, *, clock: Clock | None = None) -> WatchedDatabase:
    return WatchedDatabase(
        address.uri,
        user=address.user,
        password=address.password,
        database=address.database,
        clock=clock,
    )


def open_queue(address: Address, *, clock: Clock | None = None) -> Neo4jQueue:
    return Neo4jQueue(connect(address, clock=clock), clock=clock)


def open_jobs(address: Address, *, policy: QueuePolicy | None = None) -> Neo4jJobStore:
    """By the server's clock, as another process would."""
    return Neo4jJobStore(open_queue(address), policy=policy)


def prepared(server: BedServer) -> Address:
    """The server's address, once the queue's schema is there.

    The connection stays open for the module: the stores of its tests share the driver.
    """
    database = connect(server.address)
    server.kept.callback(database.close)
    schema.prepare_queue(database)
    return server.address


class Neo4jQueueBackend:
    def __init__(self, address: Address, clock: FakeClock) -> None:
        self.address = address
        self.clock = clock
        self._queues: list[Neo4jQueue] = []
        self._queries: list[str] | None = None

    def empty(self) -> None:
        self.open_queue().database.autocommit(DELETE_ALL)

    def open_store(self, *, policy: QueuePolicy | None = None) -> Neo4jJobStore:
        return Neo4jJobStore(self.open_queue(), policy=policy)

    def open_limiter(self, *, provider: str, limit: RateLimit) -> SharedRateLimiter:
        return SharedRateLimiter(self.open_queue(), provider=provider, limit=limit)

    def open_queue(self) -> Neo4jQueue:
        database = connect(self.address, clock=self.clock)
        database.watcher = self._saw
        queue = Neo4jQueue(database, clock=self.clock)
        self._queues.append(queue)
        return queue

    def alter(self, job_id: JobId, **fields: object) -> bool:
        # SQLite derives these by itself; here every writer of the one writes the other.
        if isinstance(strikes := fields.get("strikes"), int):
            fields["tier"] = int(tier_of(strikes))
        if isinstance(priority := fields.get("priority"), int):
            fields["rank"] = -priority
        if "processed_at" in fields:
            fields["ended_at"] = fields["processed_at"]
        self._queues[0].database.write(lambda tx: tx.all(ALTER_JOB, id=job_id, fields=fields))
        return True

    @contextmanager
    def counting_queries(self) -> Iterator[list[str]]:
        self._queries = []
        yield self._queries
        self._queries = None

    def close(self) -> None:
        for queue in self._queues:
            queue.close()

    def _saw(self, query: str) -> None:
        if self._queries is not None:
            self._queries.append(query)
