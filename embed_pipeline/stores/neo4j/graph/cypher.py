"""Every statement on the graph; names in braces are put in by `filled`.

`e` is an entity. A node is locked by a write to it (`_lock`, never committed) and read after that:
what was read before the lock may be older than the lock. `$now` is the injected clock in
milliseconds; null means the server's own. A vector lies on its entity as a list of floats; the
procedure stores them as float32.
"""

from __future__ import annotations

from embed_pipeline.stores.neo4j.graph import cypher_labels

COUNT_LABELS = cypher_labels.COUNT_LABELS
MARKED_AMONG = cypher_labels.MARKED_AMONG
MARKED_WITH_FACTS = cypher_labels.MARKED_WITH_FACTS
MISSING = cypher_labels.MISSING
MISSING_IN_WINDOW = cypher_labels.MISSING_IN_WINDOW
NEXT_WITH_LABELS = cypher_labels.NEXT_WITH_LABELS
READ_WITH_FACTS = cypher_labels.READ_WITH_FACTS

# -- entities -------------------------------------------------------------------------------

# A second creator waits at the key's constraint, so a key is created once. `_new` marks what this
# statement created, and like `_lock` it is removed before the commit. Entities that are there
# already are not locked: many callers may name them at once.
CREATE_MISSING = """
UNWIND $rows AS row
MERGE (e:{entity} {{{key}: row.uid}})
ON CREATE SET e += row.properties, e:$(row.add), e._new = true
WITH e, e._new IS NOT NULL AS is_new
FOREACH (_ IN CASE WHEN is_new THEN [true] ELSE [] END | REMOVE e._new)
WITH e WHERE NOT is_new
WITH {read}, {facts}, {labels}
RETURN collect([entity, facts, labels]) AS found
"""

LOCK_OR_CREATE = """
UNWIND $uids AS uid
MERGE (e:{entity} {{{key}: uid}})
ON CREATE SET e._new = true
SET e._lock = true
WITH e, e._new IS NOT NULL AS is_new
REMOVE e._lock, e._new
WITH is_new, {read}, {all_facts}, {labels}
WHERE NOT is_new
RETURN collect([entity, facts, labels]) AS found
"""

LOCK_ENTITIES = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) {where}
SET e._lock = true REMOVE e._lock
WITH {read}, {all_facts}, {labels}
RETURN collect([entity, facts, labels]) AS found
"""

DELETE_ENTITY = "MATCH (e:{entity} {{{key}: $uid}}) DETACH DELETE e"

LOCK_UNMEASURED = LOCK_ENTITIES.replace("all_facts", "all_unmeasured")

# A property that is null in the map is removed; those that are not in it stay as they are.
SAVE_CHANGES = """
UNWIND $rows AS row
MATCH (e:{entity} {{{key}: row.uid}}) {where}
SET e += row.properties
SET e:$(row.add)
REMOVE e:$(row.remove)
"""

SOFT_DELETE = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) {where}
SET e._lock = true REMOVE e._lock
WITH e WHERE e.{valid_to} IS NULL
SET e.{valid_to} = coalesce($now, timestamp())
RETURN e.{key} AS uid
"""

READ_ENTITIES = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) {where}
WITH {read}
RETURN collect(entity) AS found
"""

# Nodes that have no usable key, or that belong to another collection, are left out.
FIND_BY_NAME = """
MATCH (e:{entity} {{{name}: $name}}) USING INDEX SEEK e:{entity}({name})
WHERE {is_key}{also}
RETURN {read}
ORDER BY e.{valid_to} IS NOT NULL, e.{key}
LIMIT $limit
"""

# -- stored vectors -------------------------------------------------------------------------

WRITE_VECTORS = """
UNWIND $rows AS row
MATCH (e:{entity} {{{key}: row.uid}}) {where}
CALL db.create.setNodeVectorProperty(e, $vector_property, row.vector)
SET e.{vector_model} = $model, e.{vector_version} = row.version,
    e.{embedded_at} = coalesce($now, timestamp()), e.{truncated} = row.truncated,
    e:{embedded_labels}
REMOVE e:{nothing}:{excluded}:{unseen}, e.{reason}
FOREACH (_ IN row.unmark | REMOVE e:{marker}:{queued})
"""

READ_VECTORS = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) WHERE e.{vector} IS NOT NULL{also}
WITH uid, e.{vector} AS vector
RETURN uid, CASE WHEN {is_vector} THEN vector ELSE [] END AS vector, false AS truncated
"""

# The index is named: otherwise the planner might scan all versions for the keys.
EMBEDDED_VERSIONS = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) USING INDEX SEEK e:{entity}({key})
WHERE e.{vector_model} = $model AND e.{vector_version} IS NOT NULL
  AND {dimensions} = $dimensions{also}
RETURN e.{key} AS uid, e.{vector_version} AS version,
       e:{embedded} OR e.{valid_to} IS NOT NULL AS labelled
"""

# One seek per version: a text that thousands share is read once, not thousands of times.
VECTORS_OF_VERSIONS = """
UNWIND $versions AS version
CALL (version) {{
    MATCH (e:{entity}) USING INDEX SEEK e:{entity}({vector_version})
    WHERE e.{vector_version} = version AND e.{vector_model} = $model
      AND {dimensions} = $dimensions
    RETURN e.{vector} AS vector, e.{truncated} AS truncated LIMIT 1
}}
RETURN version, vector, truncated
"""

# -- search ---------------------------------------------------------------------------------

# What is read of a node that was found, as `e`: the key, and a score from the vector itself.
_SCORED = """
WITH e.{key} AS uid,
     CASE WHEN e:{entity} AND e.{valid_to} IS NULL AND {is_key}{also}
           AND ($entity_type IS NULL OR e.{entity_type} = $entity_type)
           AND e.{vector_model} = $model THEN e.{vector} END AS vector
RETURN uid, CASE WHEN {is_vector} AND size(vector) = $dimensions
                 THEN vector.similarity.cosine(vector, $query) END AS score
"""

# The numbers are loaded once, and last. A zero vector that another program left is far from
# everything; the function would refuse it.
SCAN_VECTORS = """
MATCH (e:{embedded}) USING SCAN e:{embedded}
WHERE e:{entity} AND e.{valid_to} IS NULL AND {is_key}{also}
  AND ($entity_type IS NULL OR e.{entity_type} = $entity_type) AND e.{vector_model} = $model
WITH e.{key} AS uid, e.{vector} AS vector
WHERE {is_vector} AND size(vector) = $dimensions
RETURN uid, CASE WHEN any(number IN vector WHERE number <> 0)
                 THEN vector.similarity.cosine(vector, $query) ELSE 0.5 END AS score
"""

# The index may hold approximations, so what it finds is scored again from the vectors.
NEAREST_BY_PROCEDURE = f"""
CYPHER 5
CALL db.index.vector.queryNodes($index, $nearest, $query) YIELD node AS e{_SCORED}"""


def nearest_by_search(index: str, where: str) -> str:
    """The same for servers that have SEARCH; `index` is quoted, `where` may be empty."""
    return f"""
CYPHER 25
MATCH (e) SEARCH e IN (VECTOR INDEX {index} FOR $query{where} LIMIT $nearest){_SCORED}"""


# -- models, cursors, probe: nodes of our own -------------------------------------------------

READ_MODELS = """
MATCH (m:EmbeddingModel)
RETURN m.model AS model, m.dimensions AS dimensions, m.vector_property AS vector_property,
       m.index_name AS index_name, m.state AS state
ORDER BY m.registered_at, m.model
"""

# One node that every registration locks: the first model is the first, however many start.
LOCK_REGISTRY = """
MERGE (g:EmbeddingGraph {{name: 'graph'}})
SET g._lock = true REMOVE g._lock
"""

ADD_MODEL = """
CREATE (m:EmbeddingModel {{model: $model, dimensions: $dimensions, state: $state,
    vector_property: $vector_property, index_name: $index_name}})
SET m.registered_at = coalesce($now, timestamp())
"""

READ_CURSOR = "MATCH (c:EmbeddingCursor {{name: $name}}) RETURN c.uid AS uid"

SAVE_CURSOR = """
MERGE (c:EmbeddingCursor {{name: $name}})
SET c.uid = $uid
"""

PROBE = """
MERGE (g:EmbeddingGraph {{name: 'graph'}})
SET g.probed_at = coalesce($now, timestamp())
"""
