"""A look at a graph of other programs: labels, keys, texts, relationships and vectors, by samples.

Reads only, except `give_keys`. Labels are put into statements as validated identifiers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from embed_pipeline.domain.recipe import Direction, is_identifier
from embed_pipeline.domain.reserved_names import NEO4J
from embed_pipeline.errors import RequestError
from embed_pipeline.ports.graph_survey import (
    COUNTED,
    SAMPLE,
    GraphSurvey,
    LabelFacts,
    PropertyFacts,
    RelationshipFacts,
    VectorIndexFacts,
)
from embed_pipeline.stores.neo4j.driver.database import Neo4jDatabase, Row
from embed_pipeline.stores.neo4j.graph.names import quoted
from embed_pipeline.stores.neo4j.setup.cypher import FIND_CONSTRAINTS

MOST_LABELS = 50
RELATED, EACH = 200, 100
"""Nodes of a label whose relationships are read, and how many of each node."""

GIVEN_KEY = "uid"

OURS = ("EmbeddingModel", "EmbeddingCursor", "EmbeddingGraph", "QueueSchema")

FIND_LABELS = "CALL db.labels() YIELD label RETURN label ORDER BY label"

# From the count store.
COUNT_NODES = "MATCH (n:{label}) RETURN count(n) AS nodes"

SAMPLE_PROPERTIES = """
MATCH (n:{label}) WITH n LIMIT $sample
UNWIND keys(n) AS name
WITH name, n[name] AS value
WITH name, value, replace(valueType(value), ' NOT NULL', '') AS type
RETURN name, count(*) AS filled, collect(DISTINCT type) AS types,
  coalesce(avg(CASE WHEN type = 'STRING' THEN size(value)
      WHEN type = 'LIST<STRING>' THEN reduce(length = 0, item IN value | length + size(item))
      WHEN type STARTS WITH 'LIST' THEN size(value) END), 0.0) AS length,
  count(CASE WHEN type = 'STRING' AND (value CONTAINS '</'
      OR (value CONTAINS '&' AND value =~ '(?s).*&#?\\\\w+;.*')) THEN true END) AS html,
  count(CASE WHEN type = 'STRING' AND size(value) < 500 AND (value =~ '\\\\w+://\\\\S+'
      OR value =~ '[0-9a-fA-F-]{{16,}}' OR value =~ '[0-9TZ:.,+ -]*') THEN true END) AS opaque,
  count(DISTINCT CASE WHEN type IN ['STRING', 'INTEGER'] THEN value END) AS distinct
ORDER BY name
"""

SAMPLE_LABELS = """
MATCH (n:{label}) WITH n LIMIT $sample
UNWIND labels(n) AS other
RETURN other, count(*) AS nodes
"""

SAMPLE_RELATIONSHIPS = """
MATCH (n:{label}) WITH n LIMIT $related
CALL (n) {{
    MATCH (n)-[r]-(m) WITH r, m LIMIT $each
    RETURN type(r) AS type, startNode(r) = n AS is_out, labels(m) AS labels
}}
UNWIND labels AS label
RETURN type, is_out, label, count(DISTINCT n) AS nodes, count(*) AS relationships
ORDER BY type, is_out, label
"""

COUNT_VALUES = "MATCH (n:{label}) RETURN count(DISTINCT n.{property}) AS distinct"

FIND_VECTOR_INDEXES = """
SHOW INDEXES YIELD name, type, entityType, labelsOrTypes, properties, options
WHERE type = 'VECTOR' AND entityType = 'NODE'
RETURN name, labelsOrTypes[0] AS label, properties[0] AS property,
       options.indexConfig['vector.dimensions'] AS dimensions
ORDER BY name
"""

# Under lock, so that two who do it at once give each node one key.
GIVE_KEYS = """
MATCH (n:{label}) WHERE n.{key} IS NULL
CALL (n) {{
    SET n._lock = true REMOVE n._lock
    WITH n WHERE n.{key} IS NULL
    SET n.{key} = randomUUID()
    RETURN count(*) AS given
}} IN TRANSACTIONS OF 1000 ROWS
RETURN sum(given) AS given
"""


def survey(database: Neo4jDatabase) -> GraphSurvey:
    """A few reads for each of the `MOST_LABELS` largest labels, each of a bounded sample."""
    names = [row["label"] for row in _read(database, FIND_LABELS)]
    theirs = [name for name in names if not NEO4J.has_label(name) and name not in OURS]
    counts = {name: _count(database, name) for name in theirs if is_identifier(name)}
    largest = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
    unique = {
        (row["label"], row["properties"][0])
        for row in _read(database, FIND_CONSTRAINTS)
        if len(row["properties"]) == 1
    }
    facts = [_label(database, name, counts[name], unique) for name in largest[:MOST_LABELS]]
    return GraphSurvey(
        labels=tuple(facts),
        indexes=tuple(VectorIndexFacts(**row) for row in _read(database, FIND_VECTOR_INDEXES)),
        unusable=tuple(name for name in theirs if not is_identifier(name)),
        left=max(len(largest) - MOST_LABELS, 0),
    )


def _label(
    database: Neo4jDatabase, label: str, nodes: int, unique: set[tuple[str, str]]
) -> LabelFacts:
    shared = {row["other"]: row["nodes"] for row in _sample(database, SAMPLE_LABELS, label, SAMPLE)}
    found = [
        _property(database, label, nodes, row, unique)
        for row in _sample(database, SAMPLE_PROPERTIES, label, SAMPLE)
        if is_identifier(row["name"])
    ]
    related = _read(
        database, SAMPLE_RELATIONSHIPS.format(label=quoted(label)), related=RELATED, each=EACH
    )
    return LabelFacts(
        label=label,
        nodes=nodes,
        sampled=shared.pop(label, 0),
        related=min(RELATED, nodes),
        properties=tuple(found),
        relationships=tuple(_relationships(related)),
        shared={name: count for name, count in shared.items() if not NEO4J.has_label(name)},
    )


def _property(
    database: Neo4jDatabase, label: str, nodes: int, row: Row, unique: set[tuple[str, str]]
) -> PropertyFacts:
    name, types = row["name"], frozenset(row["types"])
    facts: dict[str, Any] = {**row, "types": types}
    is_unique: bool | None = (label, name) in unique
    could_be = types in ({"STRING"}, {"INTEGER"}) and row["distinct"] == row["filled"]
    if not is_unique and could_be and nodes > COUNTED:
        is_unique = None
    elif not is_unique and could_be:
        statement = COUNT_VALUES.format(label=quoted(label), property=quoted(name))
        is_unique = _read(database, statement)[0]["distinct"] == nodes
    return PropertyFacts(**facts, is_unique=is_unique)


def _relationships(rows: list[Row]) -> list[RelationshipFacts]:
    """Both directions to the same label become one that is undirected."""
    found: Mapping[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if is_identifier(row["type"]) and is_identifier(row["label"]):
            found[row["type"], row["label"]].append(row)
    return [
        RelationshipFacts(
            type=kind,
            label=label,
            direction=Direction.BOTH
            if len(ways) > 1
            else Direction.OUT
            if ways[0]["is_out"]
            else Direction.IN,
            nodes=max(way["nodes"] for way in ways),
            relationships=sum(way["relationships"] for way in ways),
        )
        for (kind, label), ways in found.items()
        if not NEO4J.has_label(label)
    ]


def give_keys(database: Neo4jDatabase, label: str) -> int:
    """Give every node of the label without a `uid` one; a transaction for each thousand."""
    if not is_identifier(label) or NEO4J.has_label(label):
        raise RequestError(f"{label!r} is no label that can be used.")
    if not _count(database, label):
        raise RequestError(f"The graph has no node with the label {label}.")
    statement = GIVE_KEYS.format(label=quoted(label), key=quoted(GIVEN_KEY))
    return int(database.autocommit(statement)[0]["given"])


def _count(database: Neo4jDatabase, label: str) -> int:
    return int(_read(database, COUNT_NODES.format(label=quoted(label)))[0]["nodes"])


def _sample(database: Neo4jDatabase, statement: str, label: str, size: int) -> list[Row]:
    return _read(database, statement.format(label=quoted(label)), sample=size)


def _read(database: Neo4jDatabase, statement: str, **parameters: object) -> list[Row]:
    return database.read(lambda tx: tx.all(statement, **parameters))
