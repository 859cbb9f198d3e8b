"""The embedded backend: two files below the home folder, one for the queue, one for the graph."""

from __future__ import annotations

from embed_pipeline.domain.check import CheckResult, ok
from embed_pipeline.domain.policy import QueuePolicy
from embed_pipeline.domain.window import RateLimit
from embed_pipeline.stores.config import StoreConfig
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.sqlite.doctor import diagnose_file
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline.stores.sqlite.queue.job_store import SqliteJobStore
from embed_pipeline.stores.sqlite.queue.rate_limiter import SqliteRateLimiter

QUEUE_FILE, GRAPH_FILE = "queue.sqlite", "graph.sqlite"
_FILES = (("queue", QUEUE_FILE), ("graph", GRAPH_FILE))


class SqliteQueue:
    def __init__(self, file: QueueFile, *, policy: QueuePolicy) -> None:
        self._file = file
        self.jobs = SqliteJobStore(file, policy=policy)

    def limiter(self, *, provider: str, limit: RateLimit) -> SqliteRateLimiter:
        return SqliteRateLimiter(self._file, provider=provider, limit=limit)


def open_queue(config: StoreConfig) -> SqliteQueue:
    file = QueueFile(config.home / QUEUE_FILE, clock=config.clock)
    return SqliteQueue(file, policy=config.policy)


def open_graph(config: StoreConfig) -> GraphEntityStore:
    path = config.home / GRAPH_FILE
    return GraphEntityStore(SqliteGraph(path, mapping=config.mapping, clock=config.clock))


def diagnose(config: StoreConfig) -> list[CheckResult]:
    queue, graph = open_queue(config), open_graph(config)
    try:
        return [
            diagnose_file("queue", config.home / QUEUE_FILE, queue.jobs.get_queue_status),
            diagnose_file("graph", config.home / GRAPH_FILE, graph.models),
            ok("clock", "leases are timed by the clock of this machine"),
        ]
    finally:
        queue.jobs.close()
        graph.close()


def initialise(config: StoreConfig) -> list[str]:
    """Both files make their own tables on first use; this is one."""
    queue, graph = open_queue(config), open_graph(config)
    try:
        queue.jobs.get_queue_status()
        graph.models()
    finally:
        queue.jobs.close()
        graph.close()
    return [f"The {role} is in {config.home / file}." for role, file in _FILES]
