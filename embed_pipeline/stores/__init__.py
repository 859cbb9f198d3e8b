"""Stores by name; a backend's packages are imported when it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import cast

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.stores.config import (
    GraphBackend,
    Location,
    Queue,
    QueueBackend,
    Server,
    StoreConfig,
)

__all__ = [
    "GraphBackend",
    "Location",
    "Queue",
    "QueueBackend",
    "Server",
    "StoreConfig",
    "graph_backend",
    "initialise",
    "queue_backend",
]

BACKENDS: Mapping[str, str] = {
    "neo4j": "embed_pipeline.stores.neo4j",
    "postgres": "embed_pipeline.stores.postgres",
    "sqlite": "embed_pipeline.stores.sqlite",
}


def queue_backend(name: str) -> QueueBackend:
    return cast("QueueBackend", _backend(name))


def graph_backend(name: str) -> GraphBackend:
    return cast("GraphBackend", _backend(name))


def initialise(queue: QueueBackend, graph: GraphBackend, config: StoreConfig) -> list[str]:
    """Prepare both stores. Both are checked before either is written."""
    first, second = queue.locate_queue(config), graph.locate_graph(config)
    if first.identity == second.identity:
        # The settings refuse equal addresses; two different ones may still be one database.
        raise ConfigurationError(
            [f"Queue and graph need a database each: {first.place} and {second.place} are one."]
        )
    return [*queue.initialise_queue(config), *graph.initialise_graph(config)]


def _backend(name: str) -> ModuleType:
    try:
        return import_module(BACKENDS[name])
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.startswith("embed_pipeline"):
            raise
        raise ConfigurationError(
            [
                f"The {name} store needs the package {exc.name!r}, which is not installed:"
                f" pip install 'embed-pipeline[{name}]'."
            ]
        ) from exc
