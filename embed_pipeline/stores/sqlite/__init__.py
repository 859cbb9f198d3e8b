"""The embedded backend: two files below the home folder, one for the queue, one for the graph."""

from __future__ import annotations

from embed_pipeline.domain.check import CheckResult, ok
from embed_pipeline.stores.config import StoreConfig
from embed_pipeline.stores.queue.job_store import OpenQueue, QueueJobStore
from embed_pipeline.stores.sqlite.doctor import diagnose_file
from embed_pipeline.stores.sqlite.graph.entity_store import SqliteEntityStore
from embed_pipeline.stores.sqlite.queue.backend import QueueFile

QUEUE_FILE, GRAPH_FILE = "queue.sqlite", "graph.sqlite"
_FILES = (("queue", QUEUE_FILE), ("graph", GRAPH_FILE))


def open_queue(config: StoreConfig) -> OpenQueue:
    file = QueueFile(config.home / QUEUE_FILE, clock=config.clock)
    return OpenQueue(QueueJobStore(file, policy=config.policy))


def open_graph(config: StoreConfig) -> SqliteEntityStore:
    return SqliteEntityStore(config.home / GRAPH_FILE, mapping=config.mapping, clock=config.clock)


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
