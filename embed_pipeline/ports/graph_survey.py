"""What a look at a graph of other programs finds, before anything of ours is in it.

Counts of nodes are exact. Everything else is from samples, so that a survey costs the same for a
graph of any size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from embed_pipeline.domain.recipe import Direction

SAMPLE = 1_000
"""Nodes of a label that are read with their properties."""

COUNTED = 100_000
"""Up to so many nodes of a label, values are counted to learn whether they are unique."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyFacts:
    name: str
    filled: int
    """Sampled nodes that have it."""
    types: frozenset[str]
    """As Cypher names them, without NOT NULL: STRING, INTEGER, LIST<STRING> …"""
    length: float = 0.0
    """Of strings the characters, of lists of strings all of them, of other lists the items."""
    html: int = 0
    """Sampled values that look like HTML."""
    opaque: int = 0
    """Sampled values that are addresses, identifiers or numbers, not words."""
    distinct: int = 0
    is_unique: bool | None = None
    """By a constraint or by counting; None if the label has too many nodes to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipFacts:
    type: str
    direction: Direction
    label: str
    """Of the other node."""
    nodes: int
    """Sampled nodes that have such a relationship."""
    relationships: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFacts:
    label: str
    nodes: int
    sampled: int = 0
    related: int = 0
    """Sampled nodes whose relationships were read."""
    properties: tuple[PropertyFacts, ...] = ()
    relationships: tuple[RelationshipFacts, ...] = ()
    shared: Mapping[str, int] = field(default_factory=dict)
    """Other labels, by how many of the sampled nodes have them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorIndexFacts:
    name: str
    label: str
    property: str
    dimensions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSurvey:
    labels: tuple[LabelFacts, ...] = ()
    """By the number of nodes, the largest first."""
    indexes: tuple[VectorIndexFacts, ...] = ()
    unusable: tuple[str, ...] = ()
    """Labels that no setting can name: they are not words of letters, digits and underscores."""
    left: int = 0
    """Labels beyond those that were looked at."""
