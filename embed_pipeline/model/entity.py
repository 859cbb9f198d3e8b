"""The entity: a node of the knowledge graph, and the text of it that is embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from embed_pipeline.model.job import EntityUid

TextValue = str | tuple[str, ...] | None
"""A text property as the graph holds it: a string, a list of strings, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMapping:
    """How people's own graphs name things; identifiers are validated by the settings."""

    label: str = "Entity"
    key: str = "uid"
    name: str = "name"
    entity_type: str = "entityType"
    text: tuple[str, ...] = ("name", "entityType", "observations")
    valid_to: str = "validTo"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntity:
    """An entity as a caller hands it in; `properties` are mapped text properties by name.

    Name and type need not be repeated in `properties`.
    """

    name: str
    entity_type: str = ""
    properties: Mapping[str, TextValue] = field(default_factory=dict)
    uid: EntityUid | None = None

    @property
    def identity(self) -> EntityUid:
        return self.uid or uid_for(self.name, self.entity_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """`texts` are the values of the mapping's text properties, in its order."""

    uid: EntityUid
    name: str
    entity_type: str
    texts: tuple[TextValue, ...]
    valid_to: datetime | None = None

    @property
    def is_valid(self) -> bool:
        return self.valid_to is None

    @property
    def text(self) -> str:
        return embedding_text(self.texts)

    @property
    def version(self) -> str:
        return version_of(self.text)


def uid_for(name: str, entity_type: str) -> EntityUid:
    """The identity of an entity whose caller gave none: the same for the same name and type."""
    digest = hashlib.sha256(f"{entity_type}\x00{name}".encode()).hexdigest()
    return EntityUid(digest[:32])


def embedding_text(texts: Sequence[TextValue]) -> str:
    """The text to embed: a line per value, lists a line per item, empty ones left out."""
    lines: list[str] = []
    for value in texts:
        items = (value,) if isinstance(value, str) else value or ()
        lines.extend(stripped for item in items if (stripped := item.strip()))
    return "\n".join(lines)


def version_of(text: str) -> str:
    """A hash of the text to embed: a changed text is a new version, so a new job."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
