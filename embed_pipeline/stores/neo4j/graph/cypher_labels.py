"""Statements that count entities by their labels, and find those that need something.

Pages are one row each: the driver takes longer over a row than over what is in it.
"""

from __future__ import annotations

from embed_pipeline.stores.neo4j.graph.names import quoted

# -- discovery: the indexes are named, so that a planner without statistics uses them ---------

MARKED_WITH_FACTS = """
MATCH (e:{marker}) USING INDEX SEEK e:{marker}({key})
WHERE e.{key} > $after AND e:{entity}{also}
WITH e ORDER BY e.{key} LIMIT $size
WITH {read}, {facts}, {labels}
RETURN collect([entity, facts, labels]) AS found
"""

MARKED_AMONG = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) USING INDEX SEEK e:{entity}({key})
WHERE e:{marker}{also}
RETURN uid
"""

# New nodes are the newest of their label: if those are all that is missing, nothing else is looked
# at. Otherwise a scan of labels alone; of the others nothing is read.
MISSING = """
CALL () {{
    MATCH (e:{entity}) USING SCAN e:{entity}
    WITH e ORDER BY e DESC LIMIT 2000
    WITH e WHERE NOT e:{embedded}|{nothing}|{excluded}
    RETURN collect(e) AS newest
}}
UNWIND CASE WHEN size(newest) >= $missing THEN newest ELSE COLLECT {{
    MATCH (e:{missing}) USING SCAN e:{entity} RETURN e
}} END AS e
WITH e WHERE e.{key} > $after AND NOT e:{marker}{also}
WITH e ORDER BY e.{key} LIMIT $size
WITH {read}, {unmeasured}, {labels}
RETURN collect([entity, facts, labels]) AS found
"""

# A window of keys, and what is missing in it.
MISSING_IN_WINDOW = """
MATCH (e:{entity}) USING INDEX SEEK e:{entity}({key})
WHERE e.{key} > $after{also}
WITH e ORDER BY e.{key} LIMIT $window
WITH collect(e) AS seen
RETURN size(seen) AS examined, seen[-1].{key} AS last, COLLECT {{
    UNWIND seen AS e
    WITH e WHERE e:{missing}
    WITH {read}, {unmeasured}, {labels}
    RETURN [entity, facts, labels] LIMIT $size
}} AS found
"""

NEXT_WITH_LABELS = """
MATCH (e:{entity}) USING INDEX SEEK e:{entity}({key})
WHERE e.{key} > $after{also}
WITH e ORDER BY e.{key} LIMIT $size
WITH {read}, {unmeasured}, {labels}
RETURN collect([entity, facts, labels]) AS found
"""

READ_WITH_FACTS = """
UNWIND $uids AS uid
MATCH (e:{entity} {{{key}: uid}}) WHERE e.{valid_to} IS NULL{also}
WITH {read}, {facts}, {labels}
RETURN collect([entity, facts, labels]) AS found
"""

# -- labels ---------------------------------------------------------------------------------

# Each from the count store, whatever the size of the graph.
COUNT_LABELS = """
RETURN COUNT {{ (:{entity}) }} AS entities, {count_embedded} AS embedded,
       COUNT {{ (:{nothing}) }} AS nothing_to_embed, COUNT {{ (:{excluded}) }} AS excluded,
       COUNT {{ (:{unseen}) }} AS unseen, {count_marked} AS marked
"""

# -- what an audit by key cannot meet; it looks at every node, once in a pass ----------------

COUNT_MEMBERS = """
RETURN COUNT {{ (:{entity}) }} AS nodes,
       COUNT {{ MATCH (e:{entity}) WHERE {belongs} }} AS entities
"""

# Markers of a node that may belong to another collection stay, and so does an erasure.
EXCLUDE_OTHERS = """
MATCH (e:{entity})
WHERE NOT coalesce({belongs}, false) AND coalesce(e.{reason}, '') <> $erased
WITH e, {why_not} AS reason
WHERE NOT e:{excluded} OR coalesce(e.{reason}, '') <> reason
   OR (reason = $no_key AND NOT e:{unseen}) OR (reason <> $no_key AND e:{unseen})
   OR e:{nothing} OR {is_embedded} OR (e:{marker}|{queued} AND NOT {is_elsewhere})
WITH e, reason LIMIT $size
SET e:{excluded}, e.{reason} = reason
REMOVE e:{nothing}:{unseen}
FOREACH (_ IN CASE WHEN reason = $no_key THEN [true] ELSE [] END | SET e:{unseen})
FOREACH (_ IN CASE WHEN {is_embedded} THEN [true] ELSE [] END | REMOVE e:{embedded_labels})
FOREACH (_ IN CASE WHEN {is_elsewhere} THEN [] ELSE [true] END | REMOVE e:{marker}:{queued})
RETURN count(e) AS repaired
"""


def remove_stray(label: str, *, shared: bool) -> str:
    """The label of nodes that are no entities (any more), of one collection or of any."""
    return f"""
MATCH (e:{quoted(label)}{"{no_entity}" if shared else "&!{entity}"})
WITH e LIMIT $size
REMOVE e:{quoted(label)}
RETURN count(e) AS repaired
"""
