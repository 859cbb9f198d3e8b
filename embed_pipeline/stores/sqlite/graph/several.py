"""Several collections: each has a file of its own, the first one keeps the registry.

A file knows one table of entities with its counters and triggers, so that the format of 0.1 stays.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from embed_pipeline.domain.collection import (
    OF_VERSION_0_1,
    Collection,
    Registered,
    is_environment,
    placed,
    register,
)
from embed_pipeline.ports.clock import Clock
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.stores.graph.registry import CURSOR, document_of, registered_in, save_registry
from embed_pipeline.stores.sqlite.graph.backend import SqliteGraph
from embed_pipeline.stores.sqlite.graph.sql import READ_CURSOR, SAVE_CURSOR

_FIND = "SELECT 1 FROM sqlite_master WHERE name = 'embedding_cursors'"


def open_stores(
    first: Path, collections: Sequence[Collection], *, clock: Clock | None
) -> list[GraphEntityStore]:
    """A store for each; those that are new are registered."""
    known = read_registry(first)
    registered = register(collections, known)
    stores = [
        GraphEntityStore(SqliteGraph(file_of(one, first), mapping=one, clock=clock))
        for one in placed(collections, registered)
    ]
    if registered != known:
        save_registry(stores[0], registered)
    return stores


def files_of(first: Path, collections: Sequence[Collection]) -> list[Path]:
    """The files that these collections have or will have."""
    if is_environment(collections):
        return [first]
    registered = register(collections, read_registry(first))
    return [file_of(one, first) for one in placed(collections, registered)]


def file_of(collection: Collection, first: Path) -> Path:
    prefix = collection.standing.prefix
    return first.with_name(f"{first.stem}.{prefix}{first.suffix}") if prefix else first


def read_registry(path: Path) -> tuple[Registered, ...]:
    """Before the file is opened with a collection: the registry says with which."""
    if not path.exists():
        return ()
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        if connection.execute(_FIND).fetchone() is None:
            return ()
        document = connection.execute(READ_CURSOR, {"name": CURSOR}).fetchone()
    return (document and registered_in(document[0])) or (OF_VERSION_0_1,)


def write_registry(path: Path, registered: Sequence[Registered]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(SAVE_CURSOR, {"name": CURSOR, "uid": document_of(registered)})
