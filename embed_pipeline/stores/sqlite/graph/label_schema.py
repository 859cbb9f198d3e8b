"""What version 2 of the graph's file adds: where each entity stands, and how many stand there."""

from __future__ import annotations

import sqlite3

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import FIRST_PROPERTY
from embed_pipeline.stores.sqlite.graph.mapping import filled
from embed_pipeline.stores.sqlite.graph.rows import has_text
from embed_pipeline.stores.sqlite.graph.sql import COUNT_AGAIN

# Triggers count, because SQLite would count row by row, and other programs write too.
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

_READ_PROPERTIES = "SELECT vector_property FROM embedding_models"

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


def model_schema(vector_property: str) -> tuple[str, ...]:
    """What a model adds to the file; the first one's is in every file."""
    return () if vector_property == FIRST_PROPERTY else _MODEL


def add_labels(connection: sqlite3.Connection, mapping: Collection) -> None:
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
