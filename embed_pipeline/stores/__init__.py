"""Stores by name; the package of a backend is imported when it is opened."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import cast

from embed_pipeline.errors import ConfigurationError, package_missing
from embed_pipeline.stores.config import GraphBackend, InitOptions, QueueBackend, StoreConfig


def queue_backend(name: str) -> QueueBackend:
    return cast("QueueBackend", _backend(name))


def graph_backend(name: str) -> GraphBackend:
    return cast("GraphBackend", _backend(name))


def initialise(
    queue: QueueBackend,
    graph: GraphBackend,
    config: StoreConfig,
    options: InitOptions | None = None,
) -> list[str]:
    """Prepare both stores. Both are checked before either is written."""
    first, second = queue.locate_queue(config), graph.locate_graph(config)
    if first.identity == second.identity:
        # The settings refuse equal addresses; two different ones may still be one database.
        raise ConfigurationError(
            [f"Queue and graph need a database each: {first.place} and {second.place} are one."]
        )
    return [
        *queue.initialise_queue(config),
        *graph.initialise_graph(config, options or InitOptions()),
    ]


def _backend(name: str) -> ModuleType:
    """The settings allow only names of packages in this folder."""
    try:
        return import_module(f"embed_pipeline.stores.{name}")
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.startswith("embed_pipeline"):
            raise
        raise package_missing(f"The {name} store", exc.name, extra=name) from exc
