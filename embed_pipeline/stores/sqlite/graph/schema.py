"""The tables of the graph's file; made or brought up to date on first use, by `user_version`.

All of our tables but the entities' begin with `embedding_`, so that other tables may stay beside.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from embed_pipeline.domain.embedding import FIRST_PROPERTY
from embed_pipeline.domain.entity import EntityMapping
from embed_pipeline.errors import SchemaMissing
from embed_pipeline.stores.sqlite.graph.rows import has_text
from embed_pipeline.stores.sqlite.graph.sql import COUNT_AGAIN, filled

VERSION = 2

_TABLES = """
CREATE TABLE {entity} (
    {key} TEXT NOT NULL PRIMARY KEY,
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
    uid TEXT NOT NULL REFERENCES {entity} ({key}) ON DELETE CASCADE,
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

# What version 2 adds: where each entity stands, and how many stand there. Triggers count, because
# SQLite would count row by row, and other programs write too.
_LABELS = (
    "ALTER TABLE {entity} ADD COLUMN embedding_queued INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE {entity} ADD COLUMN nothing_to_embed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE {entity} ADD COLUMN embedding_excluded TEXT",
    "DROP INDEX IF EXISTS embedding_unmarked",
    "DROP INDEX IF EXISTS embedding_marked",
    "CREATE INDEX embedding_marked ON {entity} ({key}) WHERE needs_embedding = 1",
    """
    CREATE TABLE embedding_counts (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        entities INTEGER NOT NULL DEFAULT 0,
        nothing_to_embed INTEGER NOT NULL DEFAULT 0,
        excluded INTEGER NOT NULL DEFAULT 0,
        marked INTEGER NOT NULL DEFAULT 0
    )
    """,
    "INSERT INTO embedding_counts (only) VALUES (1)",
    """
    CREATE TRIGGER embedding_counts_insert AFTER INSERT ON {entity} BEGIN
        UPDATE embedding_counts SET
            entities = entities + 1,
            nothing_to_embed = nothing_to_embed + NEW.nothing_to_embed,
            excluded = excluded + (NEW.embedding_excluded IS NOT NULL),
            marked = marked + NEW.needs_embedding;
    END
    """,
    """
    CREATE TRIGGER embedding_counts_delete AFTER DELETE ON {entity} BEGIN
        UPDATE embedding_counts SET
            entities = entities - 1,
            nothing_to_embed = nothing_to_embed - OLD.nothing_to_embed,
            excluded = excluded - (OLD.embedding_excluded IS NOT NULL),
            marked = marked - OLD.needs_embedding;
    END
    """,
    """
    CREATE TRIGGER embedding_counts_update
    AFTER UPDATE OF nothing_to_embed, embedding_excluded, needs_embedding ON {entity} BEGIN
        UPDATE embedding_counts SET
            nothing_to_embed = nothing_to_embed + NEW.nothing_to_embed - OLD.nothing_to_embed,
            excluded = excluded + (NEW.embedding_excluded IS NOT NULL)
                - (OLD.embedding_excluded IS NOT NULL),
            marked = marked + NEW.needs_embedding - OLD.needs_embedding;
    END
    """,
)

_MODEL = (
    "ALTER TABLE {entity} ADD COLUMN {embedded} INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE embedding_counts ADD COLUMN {embedded} INTEGER NOT NULL DEFAULT 0",
    """
    CREATE INDEX {missing} ON {entity} ({key})
    WHERE {embedded} = 0 AND nothing_to_embed = 0 AND embedding_excluded IS NULL
      AND needs_embedding = 0
    """,
    """
    CREATE TRIGGER {missing_insert} AFTER INSERT ON {entity} WHEN NEW.{embedded} BEGIN
        UPDATE embedding_counts SET {embedded} = {embedded} + 1;
    END
    """,
    """
    CREATE TRIGGER {missing_delete} AFTER DELETE ON {entity} WHEN OLD.{embedded} BEGIN
        UPDATE embedding_counts SET {embedded} = {embedded} - 1;
    END
    """,
    """
    CREATE TRIGGER {missing_update} AFTER UPDATE OF {embedded} ON {entity}
    WHEN NEW.{embedded} <> OLD.{embedded} BEGIN
        UPDATE embedding_counts SET {embedded} = {embedded} + NEW.{embedded} - OLD.{embedded};
    END
    """,
)

# The labels of what is in the file already.
_FILL = (
    """
    UPDATE {entity} SET embedding_excluded = 'deleted', needs_embedding = 0
    WHERE {valid_to} IS NOT NULL
    """,
    """
    UPDATE {entity} SET nothing_to_embed = 1, needs_embedding = 0
    WHERE {valid_to} IS NULL AND NOT embedding_has_text({texts})
    """,
    """
    DELETE FROM embedding_vectors
    WHERE uid IN (SELECT {key} FROM {entity} WHERE nothing_to_embed = 1)
    """,
)

_FILL_MODEL = """
UPDATE {entity} SET {embedded} = 1
WHERE nothing_to_embed = 0 AND embedding_excluded IS NULL AND {key} IN (
    SELECT v.uid FROM embedding_vectors AS v
    JOIN embedding_models AS m USING (vector_property, model, dimensions)
    WHERE v.vector_property = :property
)
"""

_READ_VERSION = "PRAGMA user_version"
_SET_VERSION = f"PRAGMA user_version = {VERSION}"
_FIND_TABLE = "SELECT 1 FROM sqlite_master WHERE lower(name) = lower(:name)"
_SAVE_MAPPING = "INSERT INTO embedding_graph (only, mapping) VALUES (1, :mapping)"
_READ_PROPERTIES = "SELECT vector_property FROM embedding_models"
_READ_MAPPING = "SELECT mapping FROM embedding_graph"


def schema_for(path: Path, mapping: EntityMapping) -> Callable[[sqlite3.Connection], None]:
    """What prepares the file: makes its tables, brings them up to date, or checks that they are
    this mapping's."""

    def prepare(connection: sqlite3.Connection) -> None:
        if _version(connection) < VERSION:
            _bring_up(connection, path, mapping)
        _check(connection, path, mapping)

    return prepare


def model_schema(vector_property: str) -> tuple[str, ...]:
    """What a model adds to the file; the first one's is in every file."""
    return () if vector_property == FIRST_PROPERTY else _MODEL


def _bring_up(connection: sqlite3.Connection, path: Path, mapping: EntityMapping) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been quicker between the read and the lock.
        if _version(connection) == 0:
            _create(connection, path, mapping)
        elif _version(connection) < VERSION:
            _check_mapping(connection, path, mapping)
        if _version(connection) < VERSION:
            _add_labels(connection, mapping)
            connection.execute(_SET_VERSION)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _create(connection: sqlite3.Connection, path: Path, mapping: EntityMapping) -> None:
    if connection.execute(_FIND_TABLE, {"name": mapping.label}).fetchone():
        raise SchemaMissing(
            f"The database {path} has a table {mapping.label} that this program did not "
            "make: choose another label, or another file for the graph."
        )
    for statement in _TABLES.split(";\n"):
        connection.execute(filled(statement, mapping))
    connection.execute(_SAVE_MAPPING, {"mapping": _noted(mapping)})


def _add_labels(connection: sqlite3.Connection, mapping: EntityMapping) -> None:
    """In one transaction, so that a file is of one version or of the other."""
    connection.create_function("embedding_has_text", -1, has_text, deterministic=True)
    models = [row[0] for row in connection.execute(_READ_PROPERTIES)]
    for statement in _LABELS:
        connection.execute(filled(statement, mapping))
    for of in dict.fromkeys((FIRST_PROPERTY, *models)):
        for statement in _MODEL:
            connection.execute(filled(statement, mapping, of))
    for statement in _FILL:
        connection.execute(filled(statement, mapping))
    for of in models:
        connection.execute(filled(_FILL_MODEL, mapping, of), {"property": of})
    for of in models or [FIRST_PROPERTY]:
        connection.execute(filled(COUNT_AGAIN, mapping, of))


def _check(connection: sqlite3.Connection, path: Path, mapping: EntityMapping) -> None:
    found = _version(connection)
    if found != VERSION:
        raise SchemaMissing(
            f"The database {path} has schema version {found}, this program knows {VERSION}: "
            "use the program that made it, or another file for the graph."
        )
    _check_mapping(connection, path, mapping)


def _check_mapping(connection: sqlite3.Connection, path: Path, mapping: EntityMapping) -> None:
    if not connection.execute(_FIND_TABLE, {"name": "embedding_graph"}).fetchone():
        raise SchemaMissing(
            f"The database {path} holds something other than a graph: choose another file for it."
        )
    made_with = connection.execute(_READ_MAPPING).fetchone()[0]
    if made_with != _noted(mapping):
        raise SchemaMissing(
            f"The database {path} was made with the mapping {made_with}, the settings say "
            f"{_noted(mapping)}: set the mapping back, or choose another file for the graph."
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute(_READ_VERSION).fetchone()[0])


def _noted(mapping: EntityMapping) -> str:
    return json.dumps(asdict(mapping), ensure_ascii=False)
