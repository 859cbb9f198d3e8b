"""The APOC trigger that marks an entity when another program changes it.

The trigger runs inside the other program's transaction and adds at most one label per node. Our own
transactions carry `OURS` as metadata and are passed over: they set the marker themselves. Where
texts come from neighbours, relationships mark their ends, and a changed neighbour gets a label of
its own, which discovery passes on to its dependents.
"""

from __future__ import annotations

from collections.abc import Iterable

from neo4j.exceptions import Neo4jError

from embed_pipeline.domain.check import CheckResult, note, ok
from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import FIRST_PROPERTY, ModelRecord
from embed_pipeline.errors import RequestError, StoreAccessDenied
from embed_pipeline.stores.neo4j.driver.database import OURS, Neo4jDatabase
from embed_pipeline.stores.neo4j.graph.membership import membership
from embed_pipeline.stores.neo4j.graph.names import MARKER, NEIGHBOUR_CHANGED, own, quoted

FIND_PROCEDURES = """
SHOW PROCEDURES YIELD name WHERE name = 'apoc.trigger.install' RETURN count(*) AS found
"""

# In the system database, which is where APOC keeps triggers.
INSTALL = "CALL apoc.trigger.install($database, $name, $statement, {phase: 'before'})"
DROP = "CALL apoc.trigger.drop($database, $name)"

# In the graph's database: what is in force there.
FIND_TRIGGER = """
CALL apoc.trigger.list() YIELD name, query, installed, paused
WHERE name = $name AND installed AND NOT paused
RETURN query
"""

# A change of a value to itself is not reported to triggers, and nodes that the transaction
# deletes are left out by APOC. A node that is marked already is not written again.
MARK_CHANGED = """
WITH {properties} AS properties, {labels} AS labels WHERE coalesce($metaData.app, '') <> '{ours}'
WITH [p IN properties | [change IN coalesce($assignedNodeProperties[p], []) | change.node]]
   + [p IN properties | [change IN coalesce($removedNodeProperties[p], []) | change.node]]
   + [l IN labels | coalesce($assignedLabels[l], []) + coalesce($removedLabels[l], [])] AS changed
UNWIND changed AS nodes
UNWIND nodes AS e
WITH DISTINCT e WHERE e:{entity} AND NOT e:{marker} AND {is_key}
SET e:{marker}
"""

# The ends of a relationship that came or went. What a deleted node had is deleted with it.
MARK_ENDS = """
UNWIND $createdRelationships + $deletedRelationships AS r
WITH r WHERE type(r) IN {types}
UNWIND [startNode(r), endNode(r)] AS e
WITH DISTINCT e WHERE e:{entity} AND NOT e:{marker} AND {is_key}
SET e:{marker}
"""

# Also in our own transactions: an entity may be another's neighbour. Its dependents, which may be
# many, are marked later.
MARK_NEIGHBOURS = """
WITH {properties} AS properties, {labels} AS labels
WITH [p IN properties | [change IN coalesce($assignedNodeProperties[p], []) | change.node]]
   + [p IN properties | [change IN coalesce($removedNodeProperties[p], []) | change.node]]
   + [l IN labels | coalesce($assignedLabels[l], []) + coalesce($removedLabels[l], [])] AS changed,
     reduce(gone = [], l IN labels | gone + coalesce($removedLabels[l], [])) AS gone
UNWIND changed AS nodes
UNWIND nodes AS e
WITH DISTINCT e, gone WHERE (e:{neighbours} OR e IN gone) AND NOT e:{changed} AND EXISTS {{ {hop} }}
SET e:{changed}
"""

HOW_TO = "APOC Core is needed, with apoc.trigger.enabled=true in apoc.conf"


def install_trigger(
    graph: Neo4jDatabase,
    system: Neo4jDatabase,
    mapping: Collection,
    models: Iterable[ModelRecord],
) -> str:
    """Install the trigger, or replace it; a sentence about it."""
    if not has_triggers(graph):
        raise RequestError(
            f"{graph.place} has no APOC triggers ({HOW_TO}): changes of other programs are found"
            " by the audit, by the marker label or by EMBED_CHANGED_AT."
        )
    statement = trigger_statement(mapping, models)
    _administer(system, INSTALL, graph, mapping, statement=statement)
    return (
        f"The trigger {trigger_name(mapping)} marks changed entities as soon as APOC has read it,"
        " within a minute by default."
    )


def drop_trigger(graph: Neo4jDatabase, system: Neo4jDatabase, mapping: Collection) -> str:
    if has_triggers(graph):
        _administer(system, DROP, graph, mapping)
    return f"There is no trigger {trigger_name(mapping)} (any more)."


def check_trigger(
    graph: Neo4jDatabase, mapping: Collection, models: Iterable[ModelRecord]
) -> CheckResult:
    """Which way changes of other programs are found."""
    found = installed_trigger(graph, mapping)
    if found == trigger_statement(mapping, models):
        return ok("changes", "an APOC trigger marks what other programs change")
    if found is not None:
        return note(
            "changes",
            "the APOC trigger was installed for other properties than the settings name",
            "embed-pipeline init --trigger",
        )
    if mapping.changed_at:
        return ok("changes", f"changes of other programs are found by {mapping.changed_at}")
    remedy = "embed-pipeline init --trigger" if has_triggers(graph) else "Set EMBED_CHANGED_AT."
    return note(
        "changes", "changes of other programs are found by the audit or by their marker", remedy
    )


def has_triggers(graph: Neo4jDatabase) -> bool:
    return bool(graph.read(lambda tx: tx.one(FIND_PROCEDURES))["found"])


def trigger_name(mapping: Collection) -> str:
    return own(f"embed_pipeline_{mapping.label}", mapping)


def trigger_statement(mapping: Collection, models: Iterable[ModelRecord]) -> str:
    """Names are validated identifiers, so they can stand between quotes."""
    records = tuple(models)
    vectors = [record.vector_property for record in records] or [FIRST_PROPERTY]
    filtered = [mapping.filter.property] if mapping.filter else []
    said = (mapping.key, *mapping.text_properties, mapping.valid_to, *filtered)
    properties = dict.fromkeys((*said, *vectors))
    labels = (mapping.label, *(record.embedded_label for record in records))
    entity = {
        "entity": quoted(mapping.label),
        "is_key": membership(mapping, FIRST_PROPERTY)["is_key"],
        "marker": quoted(MARKER),
    }
    mark = MARK_CHANGED.format(
        properties=_listed(properties), labels=_listed(labels), ours=OURS, **entity
    )
    if not mapping.neighbours:
        return mark
    types = _listed(dict.fromkeys(part.relationship for part in mapping.neighbours))
    parts = (mark, MARK_ENDS.format(types=types, **entity), _neighbours_statement(mapping))
    return "".join(f"CALL () {{{part}}}\n" for part in parts)


def _neighbours_statement(mapping: Collection) -> str:
    read = {
        name: None
        for part in mapping.neighbours
        for name in (*part.properties, part.order_by)
        if name is not None
    }
    labels = dict.fromkeys(part.label for part in mapping.neighbours)
    types = dict.fromkeys(quoted(part.relationship) for part in mapping.neighbours)
    return MARK_NEIGHBOURS.format(
        properties=_listed(read),
        labels=_listed(labels),
        neighbours="|".join(map(quoted, labels)),
        changed=quoted(own(NEIGHBOUR_CHANGED, mapping)),
        hop=f"(e)-[:{'|'.join(types)}]-()",
    )


def _listed(names: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{quoted(name)[1:-1]}'" for name in names) + "]"


def installed_trigger(graph: Neo4jDatabase, mapping: Collection) -> str | None:
    """The statement of our trigger, if there is one in force."""
    if not has_triggers(graph):
        return None
    name = trigger_name(mapping)
    try:
        rows = graph.read(lambda tx: tx.all(FIND_TRIGGER, name=name))
    except (Neo4jError, RequestError):  # the procedures are there, triggers are switched off
        return None
    return rows[0]["query"] if rows else None


def _administer(
    system: Neo4jDatabase,
    command: str,
    graph: Neo4jDatabase,
    mapping: Collection,
    **parameters: str,
) -> None:
    name = trigger_name(mapping)
    try:
        system.write(lambda tx: tx.all(command, database=graph.database, name=name, **parameters))
    except StoreAccessDenied as error:
        raise RequestError(
            f"The trigger needs a user with admin rights on {system.place}: {error}"
        ) from error
    except Neo4jError as error:
        raise RequestError(f"The trigger cannot be changed: {HOW_TO}.") from error
