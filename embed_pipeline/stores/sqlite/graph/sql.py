"""Every query of the graph's file; names in braces are the mapping's, put in by `filled` alone.

Aliases: `e` an entity, `v` its vector, `m` a model, `asked` a list parameter. CROSS JOIN fixes
the order of a join: SQLite keeps no statistics here, and guesses that the list is long.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from embed_pipeline.domain.entity import EntityMapping

# -- entities -------------------------------------------------------------------------------

SAVE_ENTITY = """
INSERT INTO {entity} (needs_embedding, created_at, updated_at, {columns})
VALUES (1, ?1, ?1, {blanks})
ON CONFLICT ({key}) DO UPDATE SET
    ({changeable}) = ({new_values}),
    {valid_to} = NULL,
    needs_embedding = 1,
    updated_at = excluded.updated_at
"""

SOFT_DELETE = """
UPDATE {entity} SET {valid_to} = :now, updated_at = :now
WHERE {key} IN (SELECT value FROM json_each(:uids)) AND {valid_to} IS NULL
RETURNING {key} AS uid
"""

CLEAR_MARKERS = """
UPDATE {entity} SET needs_embedding = 0
WHERE {key} IN (SELECT value FROM json_each(:uids))
"""

READ_ENTITIES = """
SELECT {read}
FROM json_each(:uids) AS asked
CROSS JOIN {entity} AS e ON e.{key} = asked.value
"""

FIND_BY_NAME = """
SELECT {read} FROM {entity} AS e
WHERE e.{name} = :name
ORDER BY e.{valid_to} IS NOT NULL, e.{key}
LIMIT :limit
"""

# -- entities with what is known of their vectors -------------------------------------------

READ_WITH_FACTS = """
SELECT {read}, {facts}
FROM json_each(:uids) AS asked
CROSS JOIN {entity} AS e ON e.{key} = asked.value
LEFT JOIN embedding_vectors AS v ON v.uid = e.{key} AND v.vector_property = :property
"""

NEXT_WITH_FACTS = """
SELECT {read}, {facts}
FROM {entity} AS e
LEFT JOIN embedding_vectors AS v ON v.uid = e.{key} AND v.vector_property = :property
WHERE e.{key} > :after AND e.{valid_to} IS NULL
ORDER BY e.{key}
LIMIT :size
"""

# The indexes are named because without statistics the planner may walk the primary key instead.
MARKED_WITH_FACTS = """
SELECT {read}, {facts}
FROM {entity} AS e INDEXED BY embedding_marked
CROSS JOIN embedding_vectors AS v ON v.uid = e.{key} AND v.vector_property = :property
WHERE e.needs_embedding = 1 AND e.{valid_to} IS NULL AND e.{key} > :after
ORDER BY e.{key}
LIMIT :size
"""

MARKED_WITHOUT_VECTOR = """
SELECT {read}
FROM {entity} AS e INDEXED BY embedding_marked
WHERE e.needs_embedding = 1 AND e.{valid_to} IS NULL AND e.{key} > :after
  AND {no_vector}
ORDER BY e.{key}
LIMIT :size
"""

UNMARKED_WITHOUT_VECTOR = """
SELECT {read}
FROM {entity} AS e INDEXED BY embedding_unmarked
WHERE e.needs_embedding = 0 AND e.{valid_to} IS NULL AND e.{key} > :after
  AND {no_vector}
ORDER BY e.{key}
LIMIT :size
"""

# -- vectors --------------------------------------------------------------------------------

EMBEDDED_VERSIONS = """
SELECT v.uid AS uid, v.version AS version
FROM json_each(:uids) AS asked
CROSS JOIN embedding_vectors AS v ON v.uid = asked.value AND v.vector_property = :property
WHERE v.model = :model AND v.dimensions = :dimensions
"""

# One seek per version: a text that thousands share is read once, not thousands of times.
VECTORS_OF_VERSIONS = """
SELECT v.version AS version, v.vector AS vector, v.truncated AS truncated
FROM json_each(:versions) AS asked
CROSS JOIN embedding_vectors AS v ON v.id = (
    SELECT paid.id FROM embedding_vectors AS paid
    WHERE paid.vector_property = :property AND paid.version = asked.value
      AND paid.model = :model AND paid.dimensions = :dimensions
    LIMIT 1
)
"""

WRITE_VECTOR = """
INSERT INTO embedding_vectors
    (uid, vector_property, model, version, embedded_at, truncated, vector)
VALUES (:uid, :property, :model, :version, :now, :truncated, :vector)
ON CONFLICT (uid, vector_property) DO UPDATE SET
    model = excluded.model,
    version = excluded.version,
    embedded_at = excluded.embedded_at,
    truncated = excluded.truncated,
    vector = excluded.vector
"""

# NOT INDEXED keeps the scan in the order of the file: read, never sorted.
SCAN_VECTORS = """
SELECT v.id AS id, v.uid AS uid, v.vector AS vector
FROM embedding_vectors AS v NOT INDEXED
CROSS JOIN {entity} AS e ON e.{key} = v.uid
WHERE v.id > :after AND v.vector_property = :property
  AND v.model = :model AND v.dimensions = :dimensions
  AND e.{valid_to} IS NULL AND (:entity_type IS NULL OR e.{entity_type} = :entity_type)
ORDER BY v.id
LIMIT :size
"""

# -- models, cursors, probe -----------------------------------------------------------------

READ_MODELS = """
SELECT model, dimensions, vector_property, index_name, state
FROM embedding_models ORDER BY registered_at, model
"""

ADD_MODEL = """
INSERT INTO embedding_models
    (model, dimensions, vector_property, index_name, state, registered_at)
VALUES (:model, :dimensions, :vector_property, :index_name, :state, :now)
"""

READ_CURSOR = "SELECT uid FROM embedding_cursors WHERE name = :name"

SAVE_CURSOR = """
INSERT INTO embedding_cursors (name, uid) VALUES (:name, :uid)
ON CONFLICT (name) DO UPDATE SET uid = excluded.uid
"""

PROBE = "UPDATE embedding_graph SET probed_at = :now"


def quoted(identifier: str) -> str:
    """The identifier as SQL reads it literally, whatever characters it has."""
    if not identifier or "\x00" in identifier:
        raise ValueError("an SQL identifier is neither empty nor holds a NUL character")
    return '"' + identifier.replace('"', '""') + '"'


def saved_columns(mapping: EntityMapping) -> tuple[str, ...]:
    """The properties that an entity is saved with, each once."""
    return tuple(dict.fromkeys((mapping.key, mapping.name, mapping.entity_type, *mapping.text)))


@lru_cache(maxsize=128)
def filled(statement: str, mapping: EntityMapping) -> str:
    """The statement with the mapping's names in it, quoted: the only text put into a query."""
    columns = [quoted(name) for name in saved_columns(mapping)]
    read = (mapping.key, mapping.name, mapping.entity_type, mapping.valid_to, *mapping.text)
    return statement.format(
        entity=quoted(mapping.label),
        key=quoted(mapping.key),
        name=quoted(mapping.name),
        entity_type=quoted(mapping.entity_type),
        valid_to=quoted(mapping.valid_to),
        read=_listed("e." + quoted(name) for name in read),
        no_vector="NOT EXISTS (SELECT 1 FROM embedding_vectors AS v"
        f" WHERE v.uid = e.{quoted(mapping.key)} AND v.vector_property = :property)",
        facts="v.model AS model, v.version AS version, v.dimensions AS dimensions",
        columns=_listed(columns),
        # ?1 is the time of the save.
        blanks=_listed(f"?{position}" for position in range(2, len(columns) + 2)),
        changeable=_listed(columns[1:]),  # all but the key
        new_values=_listed("excluded." + column for column in columns[1:]),
        # The first three stand in the table already: key, name and type.
        text_columns="".join(f",\n    {column} TEXT" for column in columns[3:]),
    )


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
