"""Statements with the names of a collection in them: the only text ever put into a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import FIRST_PROPERTY, embedded_label
from embed_pipeline.domain.recipe import MOST_RELATIONSHIPS, Direction, Neighbours
from embed_pipeline.stores.neo4j.graph.membership import membership
from embed_pipeline.stores.neo4j.graph.names import (
    EXCLUDED,
    MARKER,
    NEIGHBOUR_CHANGED,
    NEIGHBOUR_EXPANDING,
    NOTHING,
    QUEUED,
    REASON,
    UNSEEN,
    own,
    quoted,
    vector_names,
)

# What another program left under a vector's name need not be one. (A union of types inside the
# list would be false for every stored list on 5.26.)
_IS_VECTOR = "vector IS :: LIST<FLOAT NOT NULL>"
# The comprehension reads the property once: every mention of it would load all numbers again.
_DIMENSIONS = f"head([vector IN [{{0}}] | CASE WHEN {_IS_VECTOR} THEN size(vector) ELSE 0 END])"
_FACTS = "CASE WHEN {0} IS NULL THEN NULL ELSE [{1}, {2}, {3}] END"
# To read a property by a computed name loads it, even to learn that it is there.
_UNMEASURED = "CASE WHEN v.vector IN keys(e) THEN [e[v.model], e[v.version], null] END"
_LABELS = f"""[[label IN labels(e) WHERE label STARTS WITH 'Embed'
    OR label STARTS WITH '{NOTHING}' OR label = '{MARKER}'], e.{{}}] AS labels"""


@lru_cache(maxsize=512)
def filled(statement: str, mapping: Collection, vector: str = FIRST_PROPERTY) -> str:
    """The statement with the names of the mapping and of one vector in it.

    `{read}` is an entity as `rows` reads it, `{labels}` how it is labelled, `{facts}` what is known
    of its vector, and `{all_facts}` the same for each of the parameter `$vectors`; `{unmeasured}`
    and `{all_unmeasured}` leave the dimensions out. `{missing}` is of no part of the partition.
    """
    return statement.format(
        **_entity_names(mapping), **_vector_names(mapping, vector), **membership(mapping, vector)
    )


def _entity_names(mapping: Collection) -> dict[str, str]:
    reason = own(REASON, mapping)
    return {
        "marker": MARKER,
        "queued": QUEUED,
        "nothing": own(NOTHING, mapping),
        "excluded": own(EXCLUDED, mapping),
        "unseen": own(UNSEEN, mapping),
        "changed_neighbour": own(NEIGHBOUR_CHANGED, mapping),
        "expanding_neighbour": own(NEIGHBOUR_EXPANDING, mapping),
        "reason": reason,
        "labels": _LABELS.format(reason),
        "entity": quoted(mapping.label),
        "key": quoted(mapping.key),
        "name": quoted(mapping.name_property),
        "entity_type": quoted(mapping.type_property),
        "valid_to": quoted(mapping.valid_to),
        "changed_at": quoted(mapping.changed_at) if mapping.changed_at else "",
        "read": f"[{_listed(_values(mapping))}] AS entity",
    }


def _vector_names(mapping: Collection, vector: str) -> dict[str, str]:
    names, shared = vector_names(vector), embedded_label(vector)
    vector_value, model, version = (
        "e." + quoted(name) for name in (names.vector, names.model, names.version)
    )
    dimensions = _DIMENSIONS.format(vector_value)
    asked = ("e[v.vector]", "e[v.model]", "e[v.version]")
    each = _FACTS.format(*asked, _DIMENSIONS.format(asked[0]))
    embedded, nothing, excluded = (own(n, mapping) for n in (shared, NOTHING, EXCLUDED))
    absent = (quoted(embedded), nothing, excluded, MARKER)
    return {
        "embedded": quoted(embedded),
        "embedded_labels": ":".join(map(quoted, dict.fromkeys((shared, embedded)))),
        "missing": f"{quoted(mapping.label)}&!" + "&!".join(absent),
        "unmeasured": _FACTS.format(vector_value, model, version, "null") + " AS facts",
        "all_unmeasured": f"[v IN $vectors | {_UNMEASURED}] AS facts",
        "facts": _FACTS.format(vector_value, model, version, dimensions) + " AS facts",
        "all_facts": f"[v IN $vectors | {each}] AS facts",
        "dimensions": dimensions,
        "is_vector": _IS_VECTOR,
        "vector": quoted(names.vector),
        "vector_model": quoted(names.model),
        "vector_version": quoted(names.version),
        "embedded_at": quoted(names.embedded_at),
        "truncated": quoted(names.truncated),
    }


def _values(mapping: Collection) -> Iterator[str]:
    """What is read of an entity: key, name, type, valid-to, why it is excluded, then the parts of
    its text."""
    fixed = (mapping.key, mapping.name_property, mapping.type_property, mapping.valid_to)
    for part in (*fixed, own(REASON, mapping), *mapping.text):
        yield f"e.{quoted(part)}" if isinstance(part, str) else _neighbours(part)


def _neighbours(part: Neighbours) -> str:
    """The values of an entity's neighbours, a list for each; null for too many relationships.

    Only a CASE spares a server the walk over too many of them: the count is kept with the node.
    """
    left, right = "<" * (part.direction is Direction.IN), ">" * (part.direction is Direction.OUT)
    hop = f"(e){left}-[:{quoted(part.relationship)}]-{right}"
    values = ["n." + quoted(name) for name in part.properties]
    first = ["n." + quoted(part.order_by)] if part.order_by else []
    order = dict.fromkeys([*first, *values])
    return f"""CASE WHEN COUNT {{ {hop}() }} > {MOST_RELATIONSHIPS} THEN null ELSE COLLECT {{
    MATCH {hop}(n:{quoted(part.label)})
    WHERE {" OR ".join(f"{value} IS NOT NULL" for value in values)}
    WITH DISTINCT n ORDER BY {_listed(order)} LIMIT {part.limit}
    RETURN [{_listed(values)}]
}} END"""


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
