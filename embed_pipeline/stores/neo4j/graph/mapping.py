"""The mapped label and properties as Cypher reads them: the only text ever put into a query.

Ours on a node: the labels below, one for each model that it has a vector of, and beside each
vector its model, version, time and whether its text was cut. Their names follow the vector's,
because a graph may hold several models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.embedding import FIRST_PROPERTY, embedded_label
from embed_pipeline.domain.recipe import MOST_RELATIONSHIPS, Direction, Neighbours

MARKER, QUEUED = "NeedsEmbedding", "EmbeddingQueued"
NOTHING, EXCLUDED = "NothingToEmbed", "EmbeddingExcluded"
REASON = "embedding_excluded"
"""The property that says why an entity is excluded."""

# Cypher 5 reads `\u0060` as a backtick before it parses, so doubling backticks is not enough.
_IDENTIFIER = re.compile(r"[^\W\d]\w*")

# What another program left under a vector's name need not be one. (A union of types inside the
# list would be false for every stored list on 5.26.)
_IS_VECTOR = "vector IS :: LIST<FLOAT NOT NULL>"
# The comprehension reads the property once: every mention of it would load all numbers again.
_DIMENSIONS = f"head([vector IN [{{0}}] | CASE WHEN {_IS_VECTOR} THEN size(vector) ELSE 0 END])"
_FACTS = "CASE WHEN {0} IS NULL THEN NULL ELSE [{1}, {2}, {3}] END"
# To read a property by a computed name loads it, even to learn that it is there.
_UNMEASURED = "CASE WHEN v.vector IN keys(e) THEN [e[v.model], e[v.version], null] END"
_LABELS = f"""[[label IN labels(e) WHERE label STARTS WITH 'Embed'
    OR label IN ['{MARKER}', '{NOTHING}']], e.{REASON}] AS labels"""
_OURS = {
    "marker": MARKER,
    "queued": QUEUED,
    "nothing": NOTHING,
    "excluded": EXCLUDED,
    "reason": REASON,
    "labels": _LABELS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorNames:
    """The properties that belong to one vector."""

    vector: str
    model: str
    version: str
    embedded_at: str
    truncated: str

    @property
    def beside(self) -> tuple[str, ...]:
        """What makes the vector one of ours."""
        return self.model, self.version, self.embedded_at, self.truncated

    def as_parameter(self) -> dict[str, str]:
        return {"vector": self.vector, "model": self.model, "version": self.version}


def vector_names(vector: str) -> VectorNames:
    return VectorNames(
        vector=vector,
        model=f"{vector}_model",
        version=f"{vector}_version",
        embedded_at=vector.replace("embedding", "embedded", 1) + "_at",
        truncated=f"{vector}_truncated",
    )


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None


def quoted(identifier: str) -> str:
    if not is_identifier(identifier):
        raise ValueError(f"{identifier!r} is no name of letters, digits and underscores")
    return f"`{identifier}`"


@lru_cache(maxsize=256)
def filled(statement: str, mapping: Collection, vector: str = FIRST_PROPERTY) -> str:
    """The statement with the names of the mapping and of one vector in it.

    `{read}` is an entity as `rows` reads it, `{labels}` how it is labelled, `{facts}` what is known
    of its vector, and `{all_facts}` the same for each of the parameter `$vectors`; `{unmeasured}`
    and `{all_unmeasured}` leave the dimensions out. `{missing}` is of no part of the partition.
    """
    names = vector_names(vector)
    vector_value, model, version = (
        "e." + quoted(name) for name in (names.vector, names.model, names.version)
    )
    dimensions = _DIMENSIONS.format(vector_value)
    asked = ("e[v.vector]", "e[v.model]", "e[v.version]")
    each = _FACTS.format(*asked, _DIMENSIONS.format(asked[0]))
    entity, embedded = quoted(mapping.label), quoted(embedded_label(vector))
    return statement.format(
        **_OURS,
        embedded=embedded,
        missing=f"{entity}&!{embedded}&!{NOTHING}&!{EXCLUDED}&!{MARKER}",
        unmeasured=_FACTS.format(vector_value, model, version, "null") + " AS facts",
        all_unmeasured=f"[v IN $vectors | {_UNMEASURED}] AS facts",
        entity=entity,
        key=quoted(mapping.key),
        name=quoted(mapping.name_property),
        entity_type=quoted(mapping.type_property),
        valid_to=quoted(mapping.valid_to),
        changed_at=quoted(mapping.changed_at) if mapping.changed_at else "",
        read=f"[{_listed(_values(mapping))}] AS entity",
        facts=_FACTS.format(vector_value, model, version, dimensions) + " AS facts",
        all_facts=f"[v IN $vectors | {each}] AS facts",
        dimensions=dimensions,
        is_vector=_IS_VECTOR,
        vector=quoted(names.vector),
        vector_model=quoted(names.model),
        vector_version=quoted(names.version),
        embedded_at=quoted(names.embedded_at),
        truncated=quoted(names.truncated),
    )


def _values(mapping: Collection) -> Iterator[str]:
    """What is read of an entity: key, name, type, valid-to, why it is excluded, then the parts of
    its text."""
    fixed = (mapping.key, mapping.name_property, mapping.type_property, mapping.valid_to)
    for part in (*fixed, REASON, *mapping.text):
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
