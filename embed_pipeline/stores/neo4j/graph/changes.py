"""Changes of other programs: by the time of a node's last change, and of neighbours by their label.

A neighbour that changed while its dependents are being marked gets its label again: the one that is
worked on has another.
"""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.recipe import Direction, Neighbours
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Tx
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline.stores.neo4j.graph.names import own, quoted

LATE = timedelta(seconds=60)
"""How long before the last pass a change may be dated: a transaction commits after its clock."""

_LATE_MS = round(LATE.total_seconds() * 1000)

# The first pass only notes the time: what changed before it is found by discovery and audit.
BEGIN = """
MERGE (c:EmbeddingCursor {{name: $cursor}})
ON CREATE SET c.at = coalesce($now, timestamp())
RETURN c.at AS at, coalesce($now, timestamp()) AS now
"""

# Read back by `LATE`, each time of change is taken once: the node remembers the one that was seen.
# Integers and times are two ranges of one index, which is named: the planner would take the key's.
_CHANGED = """
CALL () {{
    MATCH (e:{entity}) USING INDEX SEEK e:{entity}({changed_at})
    WHERE e.{changed_at} >= $since
    RETURN e
    UNION ALL
    MATCH (e:{entity}) USING INDEX SEEK e:{entity}({changed_at})
    WHERE e.{changed_at} >= datetime({{epochMillis: $since}})
    RETURN e
}}
WITH e WHERE {belongs} AND coalesce(e.embedding_changed_at <> e.{changed_at}, true)
"""

HAS_CHANGED = _CHANGED + "RETURN true AS found LIMIT 1"

MARK = (
    _CHANGED
    + """
CALL (e) {{
    SET e:{marker}, e.embedding_changed_at = e.{changed_at}
}} IN TRANSACTIONS OF 1000 ROWS
RETURN count(*) AS marked
"""
)

SAVE = "MATCH (c:EmbeddingCursor {{name: $cursor}}) SET c.at = $at"


HAS_CHANGED_NEIGHBOURS = (
    "RETURN COUNT {{ (:{changed_neighbour}) }} + COUNT {{ (:{expanding_neighbour}) }} AS found"
)

BEGIN_EXPANDING = """
MATCH (n:{changed_neighbour})
CALL (n) {{
    SET n:{expanding_neighbour} REMOVE n:{changed_neighbour}
}} IN TRANSACTIONS OF 1000 ROWS
"""

# `hop` leads from a neighbour to the entities that have it in their text.
EXPAND = """
MATCH (n:{expanding_neighbour}){hop}(e:{entity}) WHERE {belongs}
CALL (e) {{
    SET e:{marker}
}} IN TRANSACTIONS OF 1000 ROWS
RETURN count(*) AS marked
"""

END_EXPANDING = """
MATCH (n:{expanding_neighbour})
CALL (n) {{
    REMOVE n:{expanding_neighbour}
}} IN TRANSACTIONS OF 1000 ROWS
"""


def mark_dependents(database: Neo4jDatabase, mapping: Collection) -> int:
    """Mark the entities whose text has a changed neighbour in it, a thousand per transaction.

    A call that dies on the way is repeated by the next one.
    """
    if not mapping.neighbours:
        return 0
    if not database.read(lambda tx: tx.one(filled(HAS_CHANGED_NEIGHBOURS, mapping)))["found"]:
        return 0
    database.autocommit(filled(BEGIN_EXPANDING, mapping))
    marked = 0
    for hop in dict.fromkeys(map(_hop, mapping.neighbours)):
        (row,) = database.autocommit(filled(EXPAND.replace("{hop}", hop), mapping))
        marked += row["marked"]
    database.autocommit(filled(END_EXPANDING, mapping))
    return marked


def _hop(part: Neighbours) -> str:
    """The path seen from the neighbour."""
    left, right = "<" * (part.direction is Direction.OUT), ">" * (part.direction is Direction.IN)
    return f"{left}-[:{quoted(part.relationship)}]-{right}"


def mark_changed(database: Neo4jDatabase, mapping: Collection) -> int:
    """Mark what changed since the last pass. Costs what changed in it and in the minute before."""
    if mapping.changed_at is None:
        return 0
    name = own("changed_at", mapping)

    def read(tx: Tx) -> tuple[int, int, bool]:
        cursor = tx.one(filled(BEGIN, mapping), cursor=name)
        since = cursor["at"] - _LATE_MS
        return since, cursor["now"], bool(tx.all(filled(HAS_CHANGED, mapping), since=since))

    since, now, found = database.write(read)
    marked = 0
    if found:
        (row,) = database.autocommit(filled(MARK, mapping), since=since)
        marked = row["marked"]
    if marked or now - since > 2 * _LATE_MS:
        database.write(lambda tx: tx.all(filled(SAVE, mapping), cursor=name, at=now))
    return marked
