"""Changes of other programs, found by the property that holds the time of a node's last change."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.collection import Collection
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Tx
from embed_pipeline.stores.neo4j.graph.mapping import filled
from embed_pipeline.stores.neo4j.graph.names import own

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
