"""The embedded backend: two files below the home folder, one for the queue, one for the graph."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from embed_pipeline.domain.check import CheckResult
from embed_pipeline.domain.collection import Registered, is_environment
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.graph_survey import GraphSurvey
from embed_pipeline.stores.config import (
    InitOptions,
    Location,
    StoreConfig,
    Uninstalled,
    UninstallOptions,
)
from embed_pipeline.stores.graph.collections import CollectionsEntityStore
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.queue.job_store import OpenQueue, QueueJobStore
from embed_pipeline.stores.sqlite.clock import MachineClock
from embed_pipeline.stores.sqlite.doctor import diagnose_file, diagnose_folder
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline.stores.sqlite.graph.several import (
    files_of,
    open_stores,
    read_registry,
    write_registry,
)
from embed_pipeline.stores.sqlite.queue.backend import QueueFile

QUEUE_FILE, GRAPH_FILE = "queue.sqlite", "graph.sqlite"

NOT_ADOPTED = (
    "Only a graph in Neo4j is adopted (EMBED_GRAPH_STORE=neo4j): one in SQLite is filled by"
    " `embed-pipeline load FILE`."
)


def open_queue(config: StoreConfig) -> OpenQueue:
    file = QueueFile(config.home / QUEUE_FILE, clock=config.clock)
    return OpenQueue(QueueJobStore(file, policy=config.policy))


def open_graph(config: StoreConfig) -> EntityStore:
    path, collections = config.home / GRAPH_FILE, config.collections
    if is_environment(collections):
        return GraphEntityStore(SqliteGraph(path, mapping=collections[0], clock=config.clock))
    return CollectionsEntityStore(partial(open_stores, path, collections, clock=config.clock))


def locate_queue(config: StoreConfig) -> Location:
    return _location(config.home / QUEUE_FILE)


def locate_graph(config: StoreConfig) -> Location:
    return _location(config.home / GRAPH_FILE)


def initialise_queue(config: StoreConfig) -> list[str]:
    """The file makes its own tables on first use; this is one."""
    with closing(open_queue(config).jobs) as jobs:
        jobs.get_queue_status()
    return [f"The queue is in {config.home / QUEUE_FILE}."]


def initialise_graph(config: StoreConfig, options: InitOptions) -> list[str]:
    """The file makes its own tables on first use; this is one."""
    with closing(open_graph(config)) as graph:
        graph.models()
    files = files_of(config.home / GRAPH_FILE, config.collections)
    sentences = [f"The graph is in {' and '.join(map(str, files))}."]
    if options.rebuild_index:
        sentences.append("A graph in SQLite has no vector index: a search compares all vectors.")
    return sentences


def uninstall_graph(config: StoreConfig, options: UninstallOptions) -> Uninstalled:
    """A graph in a file is ours as a whole, entities included: its owner deletes it."""
    return Uninstalled(notes=(_delete_note("graph", config.home / GRAPH_FILE),))


def _delete_note(role: str, path: Path) -> str:
    return (
        f"The {role} is a file that holds nothing else: delete {path}, {path}-wal and {path}-shm."
    )


def registered_collections(config: StoreConfig) -> tuple[Registered, ...]:
    return read_registry(config.home / GRAPH_FILE)


def save_collections(config: StoreConfig, registered: Sequence[Registered]) -> None:
    write_registry(config.home / GRAPH_FILE, registered)


def set_trigger(config: StoreConfig, *, install: bool) -> str:
    if not install:
        return "A graph in SQLite has no trigger."
    raise RequestError("A graph in SQLite has no other writers: a trigger is for Neo4j only.")


def survey_graph(config: StoreConfig) -> GraphSurvey:
    raise RequestError(NOT_ADOPTED)


def give_keys(config: StoreConfig, label: str) -> int:
    raise RequestError(NOT_ADOPTED)


def diagnose_queue(config: StoreConfig) -> list[CheckResult]:
    clock = config.clock or MachineClock()
    file = QueueFile(config.home / QUEUE_FILE, clock=clock)
    with closing(QueueJobStore(file, policy=config.policy)) as jobs:
        found = [diagnose_file("queue", config.home / QUEUE_FILE, jobs.get_queue_status)]
    if isinstance(clock, MachineClock):
        found.append(clock.check())
    return [*found, *diagnose_folder(config.home)]


def diagnose_graph(config: StoreConfig) -> list[CheckResult]:
    with closing(open_graph(config)) as graph:
        return [diagnose_file("graph", config.home / GRAPH_FILE, graph.models)]


def _location(path: Path) -> Location:
    return Location(identity=str(path.resolve()), place=str(path))
