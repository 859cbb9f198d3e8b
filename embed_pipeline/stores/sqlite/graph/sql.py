"""Every query of the graph's file; names in braces are the mapping's, put in by `filled` alone.

Aliases: `e` an entity, `v` its vector, `m` a model, `asked` a list parameter. CROSS JOIN fixes
the order of a join: SQLite keeps no statistics here, and guesses that the list is long.
"""

from __future__ import annotations

# -- entities -------------------------------------------------------------------------------

SAVE_ENTITY = """
INSERT INTO {entity} (needs_embedding, nothing_to_embed, created_at, updated_at, {columns})
VALUES (?2, ?3, ?1, ?1, {blanks})
ON CONFLICT ({key}) DO UPDATE SET
    ({changeable}) = ({new_values}),
    {valid_to} = NULL,
    updated_at = excluded.updated_at
"""

SAVE_LABELS = """
UPDATE {entity} SET
    {embedded} = :embedded,
    nothing_to_embed = :nothing_to_embed,
    embedding_excluded = :excluded,
    needs_embedding = :marked,
    embedding_queued = :queued
WHERE {key} = :uid
"""

DELETE_ENTITY = "DELETE FROM {entity} WHERE {key} = :uid"

DROP_VECTOR = "DELETE FROM embedding_vectors WHERE uid = :uid AND vector_property = :property"

DISOWN_VECTOR = """
UPDATE embedding_vectors SET model = '', version = ''
WHERE uid = :uid AND vector_property = :property
"""

SOFT_DELETE = """
UPDATE {entity} SET {valid_to} = :now, updated_at = :now
WHERE {key} IN (SELECT value FROM json_each(:uids)) AND {valid_to} IS NULL
RETURNING {key} AS uid
"""

LABEL_EMBEDDED = """
UPDATE {entity} SET {embedded} = 1, nothing_to_embed = 0, embedding_excluded = NULL
WHERE {key} IN (SELECT value FROM json_each(:uids))
"""

CLEAR_MARKERS = """
UPDATE {entity} SET needs_embedding = 0, embedding_queued = 0
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
SELECT {read}, {facts}, {labels}
FROM json_each(:uids) AS asked
CROSS JOIN {entity} AS e ON e.{key} = asked.value
LEFT JOIN embedding_vectors AS v ON v.uid = e.{key} AND v.vector_property = :property
"""

NEXT_WITH_LABELS = """
SELECT {read}, {facts}, {labels}
FROM {entity} AS e
LEFT JOIN embedding_vectors AS v ON v.uid = e.{key} AND v.vector_property = :property
WHERE e.{key} > :after
ORDER BY e.{key}
LIMIT :size
"""

# The indexes are named because without statistics the planner may walk the primary key instead.
MARKED_WITH_FACTS = """
SELECT {read}, {facts}, {labels}
FROM {entity} AS e INDEXED BY embedding_marked
LEFT JOIN embedding_vectors AS v ON v.uid = e.{key} AND v.vector_property = :property
WHERE e.needs_embedding = 1 AND e.{key} > :after
ORDER BY e.{key}
LIMIT :size
"""

MARKED_AMONG = """
SELECT e.{key} AS uid
FROM json_each(:uids) AS asked
CROSS JOIN {entity} AS e ON e.{key} = asked.value
WHERE e.needs_embedding = 1
"""

MISSING = """
SELECT {read}, {facts}, {labels}
FROM {entity} AS e INDEXED BY {missing}
LEFT JOIN embedding_vectors AS v ON v.uid = e.{key} AND v.vector_property = :property
WHERE e.{embedded} = 0 AND e.nothing_to_embed = 0 AND e.embedding_excluded IS NULL
  AND e.needs_embedding = 0 AND e.{key} > :after
ORDER BY e.{key}
LIMIT :size
"""

COUNT_LABELS = """
SELECT entities, {embedded} AS embedded, nothing_to_embed, excluded, 0 AS unseen, marked
FROM embedding_counts
"""

# Triggers keep the counts; only what replaces rows without a word passes them by.
COUNT_AGAIN = """
UPDATE embedding_counts
SET (entities, {embedded}, nothing_to_embed, excluded, marked) = (
    SELECT count(*), coalesce(sum({embedded}), 0), coalesce(sum(nothing_to_embed), 0),
           count(embedding_excluded), coalesce(sum(needs_embedding), 0)
    FROM {entity}
)
"""

# -- vectors --------------------------------------------------------------------------------

EMBEDDED_VERSIONS = """
SELECT v.uid AS uid, v.version AS version, e.{embedded} OR e.{valid_to} IS NOT NULL AS labelled
FROM json_each(:uids) AS asked
CROSS JOIN embedding_vectors AS v ON v.uid = asked.value AND v.vector_property = :property
CROSS JOIN {entity} AS e ON e.{key} = v.uid
WHERE v.model = :model AND v.dimensions = :dimensions
"""

READ_VECTORS = """
SELECT v.uid AS uid, v.vector AS vector, v.truncated AS truncated
FROM json_each(:uids) AS asked
CROSS JOIN embedding_vectors AS v ON v.uid = asked.value AND v.vector_property = :property
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
