"""Stores by name; a backend's packages are imported when it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.stores.config import Backend, Queue, Server, StoreConfig

__all__ = ["BACKENDS", "Backend", "Queue", "Server", "StoreConfig", "backend"]

BACKENDS: Mapping[str, str] = {
    "neo4j": "embed_pipeline.stores.neo4j",
    "sqlite": "embed_pipeline.stores.sqlite",
}


def backend(name: str) -> Backend:
    if name not in BACKENDS:
        known = ", ".join(sorted(BACKENDS))
        raise ConfigurationError([f"EMBED_STORE={name} is not available; known are: {known}."])
    return cast("Backend", import_module(BACKENDS[name]))
