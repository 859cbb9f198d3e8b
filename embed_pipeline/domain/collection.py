"""A collection: which nodes of the graph are entities, and which of their properties say what.

The environment describes one collection, a file (`EMBED_CONFIG`) several. They share models, queue
and budget.
"""

from __future__ import annotations

from dataclasses import dataclass

from embed_pipeline.domain.recipe import Neighbours, TextPart

ENVIRONMENT = "entities"
"""The name of the collection that the environment describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Identifiers are validated by the settings: they are the only text put into a query."""

    name: str = ENVIRONMENT
    label: str = "Entity"
    key: str = "uid"
    name_property: str = "name"
    type_property: str = "entityType"
    text: tuple[TextPart, ...] = ("name", "entityType", "observations")
    """The properties and neighbours that make the text to embed, in order."""
    html: tuple[str, ...] = ()
    """The text properties that are HTML: only what a reader sees of them is embedded."""
    valid_to: str = "validTo"
    changed_at: str | None = None
    """Where other programs keep the time of their last change, if they do."""

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
