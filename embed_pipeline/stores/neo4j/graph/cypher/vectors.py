"""Cypher of vectors: written, found again, searched, and their indexes.

A vector lies on its entity as a list of floats; the procedure stores them as float32. Names in
braces are put in by `filled`.
"""

from __future__ import annotations

# -- stored vectors -------------------------------------------------------------------------

WRITE_VECTORS = """
UNWIND $rows AS row
MATCH (e:{entity} {{{key}: row.uid}})
CALL db.create.setNodeVectorProperty(e, $vector_property, row.vector)
SET e.{vector_model} = $model, e.{vector_version} = row.version,
    e.{embedded_at} = coalesce($now, timestamp()), e.{truncated} = row.truncated
FOREACH (_ IN row.unmark | REMOVE e:{marker})
"""

# The index is named: the planner might rather walk all versions and look for the keys among them.
EMBEDDED_VERSIONS = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) USING INDEX SEEK e:{entity}({key})
WHERE e.{vector_model} = $model AND e.{vector_version} IS NOT NULL
  AND {dimensions} = $dimensions
RETURN e.{key} AS uid, e.{vector_version} AS version
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

COUNT_SEARCHABLE = """
MATCH (e:{entity})
WHERE e.{valid_to} IS NULL AND e.{key} > ''
  AND ($entity_type IS NULL OR e.{entity_type} = $entity_type)
RETURN count(*) AS entities,
       count(CASE WHEN e.{vector_model} = $model AND e.{vector} IS NOT NULL THEN 1 END) AS vectors
"""

# The numbers are loaded once, and last. A zero vector that another program left is far from
# everything; the function would refuse it.
SCAN_VECTORS = """
MATCH (e:{entity})
WHERE e.{valid_to} IS NULL AND e.{key} > ''
  AND ($entity_type IS NULL OR e.{entity_type} = $entity_type) AND e.{vector_model} = $model
WITH e.{key} AS uid, e.{vector} AS vector
WHERE {is_vector} AND size(vector) = $dimensions
RETURN uid, CASE WHEN any(number IN vector WHERE number <> 0)
                 THEN vector.similarity.cosine(vector, $query) ELSE 0.5 END AS score
"""

# The index may hold approximations, so what it finds is scored again from the vectors.
NEAREST = """
CYPHER 5
CALL db.index.vector.queryNodes($index, $nearest, $query) YIELD node AS e
WITH e.{key} AS uid,
     CASE WHEN e:{entity} AND e.{valid_to} IS NULL AND e.{key} > ''
           AND ($entity_type IS NULL OR e.{entity_type} = $entity_type)
           AND e.{vector_model} = $model THEN e.{vector} END AS vector
RETURN uid, CASE WHEN {is_vector} AND size(vector) = $dimensions
                 THEN vector.similarity.cosine(vector, $query) END AS score
"""

# -- indexes --------------------------------------------------------------------------------

FIND_INDEX = """
SHOW INDEXES YIELD name, state, type, labelsOrTypes, properties, options
WHERE type = $kind AND labelsOrTypes = [$label] AND properties = [$property]
RETURN name, state, options.indexConfig['vector.dimensions'] AS dimensions
"""

CREATE_VERSION_INDEX = """
CREATE INDEX $index IF NOT EXISTS FOR (e:{entity}) ON (e.{vector_version})
"""

CREATE_VECTOR_INDEX = """
CREATE VECTOR INDEX $index IF NOT EXISTS FOR (e:{entity}) ON (e.{vector})
OPTIONS {{indexConfig: {{`vector.dimensions`: $dimensions,
                         `vector.similarity_function`: 'cosine'}}}}
"""

AWAIT_INDEX = "CALL db.awaitIndex($index, $seconds)"
