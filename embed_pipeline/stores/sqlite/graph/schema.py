"""The tables of the graph's file; made or brought up to date on first use, by `user_version`.

All of our tables but the entities' begin with `embedding_`, so that other tables may stay beside.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from embed_pipeline.domain.collection import Collection, placed
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.stores.graph.registry import CURSOR, registered_in
from embed_pipeline.stores.sqlite.graph.label_schema import add_labels
from embed_pipeline.stores.sqlite.graph.mapping import filled
from embed_pipeline.stores.sqlite.graph.sql import READ_CURSOR

VERSION = 2

_TABLES = """
CREATE TABLE {entity} (
    {key} {key_column} NOT NULL PRIMARY KEY,
    {name} TEXT,
    {entity_type} TEXT,
    {valid_to} INTEGER,
    -- A row that another program inserts is new to us, so it is marked by itself.
    needs_embedding INTEGER NOT NULL DEFAULT 1 CHECK (needs_embedding IN (0, 1)),
    created_at INTEGER,
    updated_at INTEGER{text_columns}
);
CREATE INDEX embedding_names ON {entity} ({name}, {key});

-- The vector comes last: what is known of it is read without touching its numbers.
CREATE TABLE embedding_vectors (
    id INTEGER PRIMARY KEY,
    uid {key_column} NOT NULL REFERENCES {entity} ({key}) ON DELETE CASCADE,
    vector_property TEXT NOT NULL,
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    embedded_at INTEGER NOT NULL,
    truncated INTEGER NOT NULL DEFAULT 0,
    dimensions INTEGER GENERATED ALWAYS AS (length(vector) / 4) VIRTUAL,
    vector BLOB NOT NULL CHECK (typeof(vector) = 'blob' AND length(vector) % 4 = 0),
    UNIQUE (uid, vector_property)
);
CREATE INDEX embedding_versions ON embedding_vectors (vector_property, version);

CREATE TABLE embedding_models (
    model TEXT NOT NULL PRIMARY KEY,
    dimensions INTEGER NOT NULL,
    vector_property TEXT NOT NULL UNIQUE,
    index_name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('filling', 'active', 'retired')),
    registered_at INTEGER NOT NULL
);

CREATE TABLE embedding_cursors (name TEXT NOT NULL PRIMARY KEY, uid TEXT);

-- One row: what the file was made with, and a column for the probe to write to.
CREATE TABLE embedding_graph (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    mapping TEXT NOT NULL,
    probed_at INTEGER
);
"""

_READ_VERSION = "PRAGMA user_version"
_SET_VERSION = f"PRAGMA user_version = {VERSION}"
_FIND_TABLE = "SELECT 1 FROM sqlite_master WHERE lower(name) = lower(:name)"
_SAVE_MAPPING = "INSERT INTO embedding_graph (only, mapping) VALUES (1, :mapping)"
_READ_MAPPING = "SELECT mapping FROM embedding_graph"


def schema_for(path: Path, mapping: Collection) -> Callable[[sqlite3.Connection], None]:
    """What prepares the file: makes its tables, brings them up to date, or checks that they are
    this mapping's."""

    def prepare(connection: sqlite3.Connection) -> None:
        if _version(connection) < VERSION:
            _bring_up(connection, path, mapping)
        _check(connection, path, mapping)

    return prepare


def _bring_up(connection: sqlite3.Connection, path: Path, mapping: Collection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been quicker between the read and the lock.
        if _version(connection) == 0:
            _create(connection, path, mapping)
        elif _version(connection) < VERSION:
            _check_mapping(connection, path, mapping)
        if _version(connection) < VERSION:
            add_labels(connection, mapping)
            connection.execute(_SET_VERSION)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _create(connection: sqlite3.Connection, path: Path, mapping: Collection) -> None:
    if connection.execute(_FIND_TABLE, {"name": mapping.label}).fetchone():
        raise SchemaMissing(
            f"The database {path} has a table {mapping.label} that this program did not "
            "make: choose another label, or another file for the graph."
        )
    for statement in _TABLES.split(";\n"):
        connection.execute(filled(statement, mapping))
    connection.execute(_SAVE_MAPPING, {"mapping": _noted(mapping)})


def _check(connection: sqlite3.Connection, path: Path, mapping: Collection) -> None:
    found = _version(connection)
    if found != VERSION:
        raise SchemaMissing(
            f"The database {path} has schema version {found}, this program knows {VERSION}: "
            "use the program that made it, or another file for the graph."
        )
    _check_mapping(connection, path, mapping)


def _check_mapping(connection: sqlite3.Connection, path: Path, mapping: Collection) -> None:
    if not connection.execute(_FIND_TABLE, {"name": "embedding_graph"}).fetchone():
        raise SchemaMissing(
            f"The database {path} holds something other than a graph: choose another file for it."
        )
    if not mapping.standing.others:
        document = connection.execute(READ_CURSOR, {"name": CURSOR}).fetchone()
        if document:
            placed([mapping], registered_in(document[0]) or ())
    made_with = connection.execute(_READ_MAPPING).fetchone()[0]
    if made_with != _noted(mapping):
        raise SchemaMissing(
            f"The database {path} was made with the mapping {made_with}, the settings say "
            f"{_noted(mapping)}: set the mapping back, or choose another file for the graph."
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute(_READ_VERSION).fetchone()[0])


def _noted(mapping: Collection) -> str:
    """As the file says it; the words are those of version 0.1."""
    said = {
        "label": mapping.label,
        "key": mapping.key,
        "name": mapping.name_property,
        "entity_type": mapping.type_property,
        "text": mapping.text,
        "valid_to": mapping.valid_to,
    }
    return json.dumps(said, ensure_ascii=False)
