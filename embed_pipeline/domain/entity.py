"""The entity: a node of the knowledge graph, and the text of it that is embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain

from embed_pipeline.domain.collection import ENVIRONMENT, Collection
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recipe import TextValue, embedding_text, version_of
from embed_pipeline.errors import RequestError

LONGEST = 7_500
"""Bytes of a name, key or type: Neo4j indexes at most about 8 kB, with more in the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntity:
    """An entity as a caller hands it in; `properties` are mapped text properties by name.

    Name and type need not be repeated in `properties`. Over an existing entity, a property that
    is left out and an empty type say nothing: the old value stays. None removes a property.
    """

    name: str
    entity_type: str = ""
    properties: Mapping[str, TextValue] = field(default_factory=dict)
    uid: EntityUid | None = None
    collection: str | None = None
    """None: the one that the uid names, otherwise the one that was registered first."""

    @property
    def identity(self) -> EntityUid:
        return self.uid or uid_for(self.name, self.entity_type)


@dataclass(frozen=True, kw_only=True)
class Entity:
    """`texts` are the values of the parts of the collection's text, in its order."""

    uid: EntityUid
    name: str
    entity_type: str
    texts: tuple[TextValue, ...]
    valid_to: datetime | None = None
    erased: bool = False
    """A person had it erased: it may be changed, but is never embedded again."""
    html: frozenset[int] = frozenset()
    """The positions of the texts that are HTML."""
    left_out: tuple[str, ...] = ()
    """Paths whose neighbours are not in the text, because there are too many relationships."""
    collection: str = ENVIRONMENT
    """Its name."""

    @property
    def is_valid(self) -> bool:
        return self.valid_to is None and not self.erased

    @cached_property
    def text(self) -> str:
        return embedding_text(self.texts, self.html)

    @cached_property
    def version(self) -> str:
        return version_of(self.text)


def uid_for(name: str, entity_type: str) -> EntityUid:
    """The identity of an entity whose caller gave none: the same for the same name and type."""
    digest = hashlib.sha256(f"{entity_type}\x00{name}".encode()).hexdigest()
    return EntityUid(digest[:32])


def merged(new: NewEntity, existing: Entity | None, *, mapping: Collection) -> Entity:
    """The entity after an upsert: valid, unless it was erased, with what `new` says."""
    before = existing.entity_type if existing else ""
    entity_type = mapping.fixed_type or new.entity_type or before
    said: dict[str, TextValue] = {**new.properties, mapping.name_property: new.name}
    if new.entity_type:
        said[mapping.type_property] = new.entity_type
    earlier = existing.texts if existing else (None,) * len(mapping.text)
    texts = (
        said.get(part, old) if isinstance(part, str) else old
        for part, old in zip(mapping.text, earlier, strict=True)
    )
    return Entity(
        uid=new.identity,
        collection=mapping.name,
        name=new.name,
        entity_type=entity_type,
        texts=tuple(tuple(text) if isinstance(text, list) else text for text in texts),
        erased=existing is not None and existing.erased,
        html=mapping.html_positions,
        left_out=existing.left_out if existing else (),
    )


def check_entities(entities: Sequence[NewEntity], *, mapping: Collection) -> None:
    """Refuse what no store could keep, before anything is written."""
    unknown = {name for new in entities for name in new.properties} - set(mapping.text_properties)
    if unknown:
        raise RequestError(
            f"Unknown text properties: {', '.join(sorted(unknown))}. "
            f"The mapping knows: {', '.join(mapping.text_properties)}."
        )
    for new in entities:
        problem = _problem_of(new, mapping)
        if problem:
            raise RequestError(f"Entity {(new.uid or new.name)[:100]!r}: {problem}.")


def _problem_of(new: NewEntity, mapping: Collection) -> str | None:
    if misfit := _misfit(new, mapping):
        return misfit
    if not new.name.strip():
        return "its name is empty"
    if "\x00" in (new.uid or ""):
        return "its key holds a NUL character"
    indexes = (("name", new.name), ("key", new.uid or ""), ("type", new.entity_type))
    for what, indexed in indexes:
        if len(indexed.encode(errors="replace")) > LONGEST:
            return f"its {what} is longer than {LONGEST:,} bytes"
    for name, said in ((mapping.name_property, new.name), (mapping.type_property, new.entity_type)):
        if new.properties.get(name, said) != said:
            return f"its property {name} contradicts {said!r}"
    for name, value in new.properties.items():
        if not _is_text(value):
            return f"its property {name} is neither a string nor a list of strings"
    strings = [new.uid or "", new.name, new.entity_type, *_strings(new.properties.values())]
    return None if _is_unicode("".join(strings)) else "its text is not valid Unicode"


def _misfit(new: NewEntity, mapping: Collection) -> str | None:
    """Why the collection cannot have such an entity."""
    if mapping.filter is not None:
        return f"{mapping.name} has a filter, so only your own programs can create its entities"
    if new.entity_type not in ("", mapping.fixed_type or new.entity_type):
        return f"the type of {mapping.name} is {mapping.fixed_type}, got {new.entity_type!r}"
    return None if mapping.can_have(new.uid or "") else f"{mapping.name} has integers as keys"


def _is_text(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str)


def _strings(values: Iterable[TextValue]) -> Iterable[str]:
    return chain.from_iterable((v,) if isinstance(v, str) else v or () for v in values)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
