"""A collection: which nodes of the graph are entities, and which of their properties say what.

The environment describes one collection, a file (`EMBED_CONFIG`) several. They share models, queue
and budget. The graph registers each by name, in order: of two collections that fit the same node,
the one that was registered first has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recipe import Neighbours, TextPart, recipe_hash
from embed_pipeline.errors import CollectionMismatch, RequestError

ENVIRONMENT = "entities"
"""The name of the collection that the environment describes."""

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")

FilterValue = str | int | bool


class KeyType(StrEnum):
    STRING = "string"
    INTEGER = "integer"


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_integer(key: str) -> bool:
    """Whether the key is an integer of 64 bits as uids write it: in decimal, without zeros."""
    return _INTEGER.fullmatch(key) is not None and -(2**63) <= int(key) < 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Only nodes whose property has one of these values, or has any value, are entities."""

    property: str
    values: tuple[FilterValue, ...] = ()
    """Empty: the property only has to exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a collection stands among those of its graph, by the graph's registry."""

    prefix: str = ""
    """What keys have before them, with a slash, in uids; nothing in the collection that was
    registered first. It is the name at registration: renaming a collection changes no uid."""
    earlier: tuple[Collection, ...] = ()
    """Those that were registered before it, which have the nodes that fit both."""
    others: tuple[Collection, ...] = ()
    """All other collections of the graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Identifiers are validated by the settings: they are the only text put into a query."""

    name: str = ENVIRONMENT
    label: str = "Entity"
    key: str = "uid"
    key_type: KeyType = KeyType.STRING
    name_property: str = "name"
    type_property: str = "entityType"
    fixed_type: str | None = None
    """The type of all its entities, instead of a property of each."""
    text: tuple[TextPart, ...] = ("name", "entityType", "observations")
    """The properties and neighbours that make the text to embed, in order."""
    html: tuple[str, ...] = ()
    """The text properties that are HTML: only what a reader sees of them is embedded."""
    valid_to: str = "validTo"
    changed_at: str | None = None
    """Where other programs keep the time of their last change, if they do."""
    filter: Filter | None = None
    standing: Standing = field(default_factory=Standing)

    @property
    def properties(self) -> tuple[str, ...]:
        """What is read of an entity: key, name, type, valid-to, then the texts."""
        return (
            self.key,
            self.name_property,
            self.type_property,
            self.valid_to,
            *self.text_properties,
        )

    @property
    def text_properties(self) -> tuple[str, ...]:
        """The entity's own properties in its text, in order."""
        return tuple(part for part in self.text if isinstance(part, str))

    @property
    def neighbours(self) -> tuple[Neighbours, ...]:
        return tuple(part for part in self.text if isinstance(part, Neighbours))

    @property
    def html_positions(self) -> frozenset[int]:
        """Which parts of the text are HTML."""
        if not self.html:
            return frozenset()
        return frozenset(place for place, part in enumerate(self.text) if part in self.html)

    @property
    def recipe(self) -> str:
        """A hash of what decides which nodes are entities and what their text is."""
        nodes = [self.key, self.key_type, asdict(self.filter) if self.filter else None]
        return recipe_hash(label=self.label, key=json.dumps(nodes), text=self.text, html=self.html)

    def can_have(self, key: str) -> bool:
        return self.key_type is KeyType.STRING or is_integer(key)

    def uid_of(self, key: str) -> EntityUid:
        prefix = self.standing.prefix
        return EntityUid(f"{prefix}/{key}" if prefix else key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What the graph knows of a collection."""

    name: str
    prefix: str = ""
    recipe: str = ""
    """Empty if the graph was made before recipes were registered."""
    label: str = ""


OF_VERSION_0_1 = Registered(name=ENVIRONMENT)
"""What a graph has that was made before collections were registered."""


def is_environment(collections: Sequence[Collection]) -> bool:
    return [one.name for one in collections] == [ENVIRONMENT]


def register(
    collections: Sequence[Collection], registered: Sequence[Registered]
) -> tuple[Registered, ...]:
    """The registry with the new collections behind those that are there."""
    known = {one.name for one in registered}
    taken = {one.prefix or one.name for one in registered}
    added = list(registered)
    for new in collections:
        if new.name in known:
            continue
        if new.name in taken:
            raise CollectionMismatch(
                f"Keys of another collection begin with {new.name}/, which was its name once: "
                f"choose another name than {new.name}."
            )
        prefix = new.name if added else ""
        added.append(Registered(name=new.name, prefix=prefix, recipe=new.recipe, label=new.label))
    return tuple(added)


def accepted(
    collections: Sequence[Collection], registered: Sequence[Registered]
) -> tuple[Registered, ...]:
    """The registry with the recipes that these collections have now."""
    now = {one.name: one for one in collections}
    return tuple(
        replace(one, recipe=now[one.name].recipe, label=now[one.name].label)
        if one.name in now
        else one
        for one in registered
    )


def renamed(registered: Sequence[Registered], old: str, new: str) -> tuple[Registered, ...]:
    """The registry with another name for a collection. Its uids stay, so its jobs do too."""
    found = find_registered(registered, old)
    taken = {said for one in registered if one is not found for said in (one.name, one.prefix)}
    if not NAME.fullmatch(new) or new in taken:
        raise RequestError(
            f"{new!r} cannot be the name: it must be up to 32 small letters, digits and "
            "underscores, first a letter, and be or have been no other collection's name."
        )
    return tuple(replace(one, name=new) if one is found else one for one in registered)


def without(registered: Sequence[Registered], name: str) -> tuple[Registered, ...]:
    """The registry without a collection."""
    found = find_registered(registered, name)
    if not found.prefix:
        raise RequestError(
            f"{name} was registered first, and its keys have no name before them: it can be "
            "renamed, but not removed."
        )
    return tuple(one for one in registered if one is not found)


def find_registered(registered: Sequence[Registered], name: str) -> Registered:
    for one in registered:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in registered) or "none"
    raise RequestError(f"The graph has no collection {name!r}; it has: {known}.")


def placed(
    collections: Sequence[Collection], registered: Sequence[Registered]
) -> tuple[Collection, ...]:
    """The collections in the order of their registration, each with its standing.

    Refused are collections that the graph does not know, or knows with another recipe, and a list
    that leaves one of the graph's out: its jobs would be taken for those of deleted entities.
    """
    configured = {one.name: one for one in collections}
    known = {one.name: one for one in registered}
    if new := [name for name in configured if name not in known]:
        raise CollectionMismatch(
            f"The graph does not know the collection {new[0]} yet: run `embed-pipeline init`."
        )
    if left_out := [name for name in known if name not in configured]:
        raise CollectionMismatch(
            f"The graph has the collection {left_out[0]}, which the settings do not describe: "
            f"describe it in the file of EMBED_CONFIG, or `embed-pipeline collection remove "
            f"{left_out[0]}`."
        )
    ordered = [
        replace(configured[one.name], standing=Standing(prefix=one.prefix)) for one in registered
    ]
    return tuple(
        replace(
            one,
            standing=replace(
                one.standing,
                earlier=tuple(ordered[:number]),
                others=tuple(ordered[:number] + ordered[number + 1 :]),
            ),
        )
        for number, one in enumerate(ordered)
    )


def changed(collections: Sequence[Collection], registered: Sequence[Registered]) -> list[str]:
    """The names of collections whose recipe is another one now."""
    known = {one.name: one.recipe for one in registered}
    return [one.name for one in collections if known.get(one.name, "") not in ("", one.recipe)]
