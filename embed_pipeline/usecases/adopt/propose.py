"""From a look at somebody's graph to collections that would embed it. Pure, and only a proposal.

What it cannot know (which texts matter, which names are shown) it guesses from names, types and
lengths; a person reads the file before anything is embedded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from embed_pipeline.domain.recipe import Direction, Neighbours
from embed_pipeline.ports.graph_survey import (
    GraphSurvey,
    LabelFacts,
    PropertyFacts,
    RelationshipFacts,
)

NAMES = ("name", "title", "displayname", "fullname", "label", "username", "caption", "subject")
KEYS = ("uid", "id", "uuid", "key", "code", "slug")
ENDS = ("validTo", "valid_to", "deletedAt", "deleted_at")

LONGEST_NAME = 120
LEAST_FILLED = 0.02
"""Properties that fewer of the sampled nodes have are left out."""

MOST_PATHS, MOST_RELATED = 3, 20
"""Paths of a collection, and how many neighbours a node has on average at most."""

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedCollection:
    name: str
    label: str
    key: str
    key_type: str
    key_is_certain: bool
    """Unique by a constraint or by counting; otherwise only in the sample."""
    name_property: str
    properties: tuple[str, ...]
    html: tuple[str, ...]
    neighbours: tuple[Neighbours, ...]
    valid_to: str | None
    entities: int
    tokens: int
    """An estimate, from the lengths of the sample."""
    without_text: int
    """About so many at most, from the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    collections: tuple[ProposedCollection, ...] = ()
    without_key: tuple[str, ...] = ()
    """Labels with texts whose nodes nothing identifies."""
    without_text: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    nodes: dict[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.collections)

    @property
    def entities(self) -> int:
        return sum(one.entities for one in self.collections)


def propose(survey: GraphSurvey) -> Proposal:
    """A collection for each label with a key and a text."""
    names = {facts.label: _name_property(facts) for facts in survey.labels}
    collections: list[ProposedCollection] = []
    without_key, without_text = [], []
    for facts in survey.labels:
        key, texts = _key(facts, names[facts.label]), _texts(facts, names[facts.label])
        if not texts:
            without_text.append(facts.label)
        elif key is None:
            without_key.append(facts.label)
        else:
            collections.append(_collection(facts, key, texts, names, survey))
    return Proposal(
        collections=tuple(_with_distinct_names(collections)),
        without_key=tuple(without_key),
        without_text=tuple(without_text),
        notes=tuple(_notes(survey, [one.label for one in collections])),
        nodes={facts.label: facts.nodes for facts in survey.labels},
    )


def _collection(
    facts: LabelFacts,
    key: PropertyFacts,
    texts: Sequence[PropertyFacts],
    names: dict[str, PropertyFacts | None],
    survey: GraphSurvey,
) -> ProposedCollection:
    own = [one for one in texts if one.name != key.name]
    related = _neighbours(facts, names)
    per_node = sum(one.length * one.filled for one in own) / max(facts.sampled, 1)
    per_node += sum(length for _, length in related)
    filled = max((one.filled for one in own), default=0)
    ends = [one.name for one in facts.properties if one.name in ENDS]
    name = names[facts.label]
    return ProposedCollection(
        name=_collection_name(facts.label),
        label=facts.label,
        key=key.name,
        key_type="integer" if key.types == {"INTEGER"} else "string",
        key_is_certain=bool(key.is_unique),
        name_property=(name or own[0]).name,
        properties=tuple(one.name for one in own),
        html=tuple(one.name for one in own if one.html * 20 > one.filled),
        neighbours=tuple(part for part, _ in related),
        valid_to=ends[0] if ends else None,
        entities=facts.nodes,
        tokens=round(per_node * facts.nodes / CHARACTERS_PER_TOKEN),
        without_text=round((1 - filled / max(facts.sampled, 1)) * facts.nodes),
    )


def _name_property(facts: LabelFacts) -> PropertyFacts | None:
    """By its name, otherwise the shortest text that is mostly there."""
    words = [one for one in _words(facts) if one.types == {"STRING"}]
    known = {one.name.lower().replace("_", ""): one for one in words}
    for name in NAMES:
        if name in known:
            return known[name]
    short = [w for w in words if w.length <= LONGEST_NAME and w.filled * 2 > facts.sampled]
    return min(short, key=lambda one: one.length, default=None)


def _key(facts: LabelFacts, name: PropertyFacts | None) -> PropertyFacts | None:
    """Unique strings or integers that all sampled nodes have; never the name, which may change."""
    usable = [
        one
        for one in facts.properties
        if one.types in ({"STRING"}, {"INTEGER"})
        and one.filled == one.distinct == facts.sampled
        and one.is_unique is not False
        and one.length <= LONGEST_NAME
        and one is not name
    ]
    own = (*KEYS, f"{facts.label}id".lower(), f"{facts.label}uid".lower())

    def rank(one: PropertyFacts) -> tuple[bool, bool, float]:
        return not one.is_unique, one.name.lower().replace("_", "") not in own, one.length

    return min(usable, key=rank, default=None)


def _words(facts: LabelFacts) -> list[PropertyFacts]:
    """Properties with words in them: no addresses, identifiers or numbers."""
    return [
        one
        for one in facts.properties
        if one.types <= {"STRING", "LIST<STRING>"}
        and one.filled > LEAST_FILLED * facts.sampled
        and one.opaque * 2 < one.filled
        and one.length >= 1
    ]


def _texts(facts: LabelFacts, name: PropertyFacts | None) -> list[PropertyFacts]:
    """The name, then the others from short to long."""
    others = sorted((one for one in _words(facts) if one is not name), key=lambda one: one.length)
    return [name, *others] if name else others


def _neighbours(
    facts: LabelFacts, names: dict[str, PropertyFacts | None]
) -> list[tuple[Neighbours, float]]:
    """Paths to nodes with a short name, of which a node has few; and their length in the text."""
    found: list[tuple[Neighbours, float]] = []
    for one in sorted(facts.relationships, key=lambda one: (-one.nodes, one.type, one.label)):
        name, each = names.get(one.label), one.relationships / max(one.nodes, 1)
        if name is None or name.length > LONGEST_NAME or each > MOST_RELATED:
            continue
        part = Neighbours(
            relationship=one.type,
            direction=one.direction,
            label=one.label,
            properties=(name.name,),
            heading=_heading(one),
        )
        found.append((part, name.length * one.relationships / max(facts.related, 1)))
    return found[:MOST_PATHS]


def _heading(one: RelationshipFacts) -> str:
    """What the neighbours are to the entity, in the words of the graph."""
    verb = one.type.replace("_", " ").lower()
    return f"{one.label} {verb}" if one.direction is Direction.IN else f"{verb} {one.label}"


def _collection_name(label: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", label).lower()
    name = re.sub(r"[^a-z0-9_]", "", snake).strip("_")[:30]
    return name if name[:1].isalpha() else f"c_{name}"


def _with_distinct_names(collections: Iterable[ProposedCollection]) -> Iterable[ProposedCollection]:
    taken: set[str] = set()
    for one in collections:
        later = (f"{one.name}{number}" for number in range(2, 100))
        name = next(name for name in (one.name, *later) if name not in taken)
        taken.add(name)
        yield replace(one, name=name)


def _notes(survey: GraphSurvey, labels: Sequence[str]) -> Iterable[str]:
    """What a person has to know beyond the collections."""
    for facts in survey.labels:
        for other, nodes in facts.shared.items():
            if facts.label in labels and other in labels and facts.label < other:
                share = "all" if nodes == facts.sampled else f"{nodes:,} of {facts.sampled:,}"
                yield (
                    f"Of the sampled {facts.label} nodes {share} are {other} too: a node belongs"
                    " to the collection that comes first in the file."
                )
        for one in facts.properties:
            if one.types == {"LIST<FLOAT>"} and one.length >= 8:
                index = _index_on(survey, one.name)
                yield (
                    f"{facts.label}.{one.name} holds vectors of about {one.length:.0f}"
                    f" numbers{index}: another program made them."
                )
    if survey.unusable:
        yield (
            f"Labels that cannot be named are left out: {', '.join(map(repr, survey.unusable))}."
        )
    if survey.left:
        yield f"{survey.left} smaller labels were not looked at."


def _index_on(survey: GraphSurvey, name: str) -> str:
    found = [index.name for index in survey.indexes if index.property == name]
    return f" (index {', '.join(found)})" if found else ""
