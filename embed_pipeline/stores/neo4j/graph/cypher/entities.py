"""Cypher of entities, discovery, registry and cursors; names in braces are put in by `filled`.

`e` is an entity. A node is locked by a write to it (`_lock`, never committed) and looked at
after that: what was read before the lock may be older than the lock. `$now` is the injected
clock in milliseconds; null means the server's own.
"""

from __future__ import annotations

# -- entities -------------------------------------------------------------------------------

# Whoever comes second waits at the key's constraint, so a key is created once. `_new` tells the
# creator, and like `_lock` it is gone again before anybody else can see the node. Those that are
# there already are not locked: many callers may name them at once.
CREATE_MISSING = """
UNWIND $rows AS row
MERGE (e:{entity} {{{key}: row.uid}})
ON CREATE SET e += row.properties, e:{marker}, e._new = true
WITH e, e._new IS NOT NULL AS is_new
FOREACH (_ IN CASE WHEN is_new THEN [true] ELSE [] END | REMOVE e._new)
WITH e WHERE NOT is_new
WITH {read}, {facts}
RETURN collect([entity, facts]) AS found
"""

LOCK_OR_CREATE = """
UNWIND $uids AS uid
MERGE (e:{entity} {{{key}: uid}})
ON CREATE SET e._new = true
SET e._lock = true
WITH e, e._new IS NOT NULL AS is_new
REMOVE e._lock, e._new
WITH is_new, {read}, {all_facts}
WHERE NOT is_new
RETURN collect([entity, facts]) AS found
"""

LOCK_ENTITIES = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}})
SET e._lock = true REMOVE e._lock
WITH {read}, {all_facts}
RETURN collect([entity, facts]) AS found
"""

# A property that is null in the map is removed; those that are not in it stay as they are.
SAVE_ENTITIES = """
UNWIND $rows AS row
MATCH (e:{entity} {{{key}: row.uid}})
SET e += row.properties, e:{marker}
REMOVE e.{valid_to}
"""

CLEAR_MARKERS = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}})
REMOVE e:{marker}
"""

SOFT_DELETE = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}})
SET e._lock = true REMOVE e._lock
WITH e WHERE e.{valid_to} IS NULL
SET e.{valid_to} = coalesce($now, timestamp())
RETURN e.{key} AS uid
"""

READ_ENTITIES = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}})
WITH {read}
RETURN collect(entity) AS found
"""

# `> ''` leaves out nodes that have no key, or one that is not a string: nobody can name them.
FIND_BY_NAME = """
MATCH (e:{entity} {{{name}: $name}}) USING INDEX SEEK e:{entity}({name})
WHERE e.{key} > ''
RETURN {read}
ORDER BY e.{valid_to} IS NOT NULL, e.{key}
LIMIT $limit
"""

# -- discovery: the indexes are named, so that a planner without statistics uses them ---------

MARKED_WITHOUT_VECTOR = """
MATCH (e:{marker}) USING INDEX SEEK e:{marker}({key})
WHERE e.{key} > $after AND e:{entity} AND e.{valid_to} IS NULL AND e.{vector} IS NULL
WITH e ORDER BY e.{key} LIMIT $size
RETURN {read}
"""

# A window of keys, and what is missing in it: among many embedded ones nothing else would end.
UNMARKED_WITHOUT_VECTOR = """
MATCH (e:{entity}) USING INDEX SEEK e:{entity}({key})
WHERE e.{key} > $after
WITH e ORDER BY e.{key} LIMIT $window
WITH collect(e) AS seen
RETURN size(seen) AS examined, seen[-1].{key} AS last, COLLECT {{
    UNWIND seen AS e
    WITH e WHERE NOT e:{marker} AND e.{valid_to} IS NULL AND e.{vector} IS NULL
    WITH {read}
    RETURN entity LIMIT $size
}} AS found
"""

MARKED_WITH_FACTS = """
MATCH (e:{marker}) USING INDEX SEEK e:{marker}({key})
WHERE e.{key} > $after AND e:{entity} AND e.{valid_to} IS NULL AND e.{vector} IS NOT NULL
WITH e ORDER BY e.{key} LIMIT $size
RETURN {read}, {facts}
"""

NEXT_WITH_FACTS = """
MATCH (e:{entity}) USING INDEX SEEK e:{entity}({key})
WHERE e.{key} > $after AND e.{valid_to} IS NULL
WITH e ORDER BY e.{key} LIMIT $size
RETURN {read}, {facts}
"""

READ_WITH_FACTS = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) WHERE e.{valid_to} IS NULL
RETURN {read}, {facts}
"""

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
CREATE (m:EmbeddingModel)
SET m = $record, m.registered_at = coalesce($now, timestamp())
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
