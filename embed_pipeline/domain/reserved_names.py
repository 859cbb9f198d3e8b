"""Which names of labels and properties a store can use for people's own entities.

The settings check it, so that a mapping that no run could use is refused before anything is
launched. The stores check it too, for mappings that do not come from the settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from embed_pipeline.domain.collection import Collection
from embed_pipeline.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The names that a store uses itself, whole or by their beginning."""

    labels: tuple[str, ...] = ()
    label_beginnings: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    property_beginnings: tuple[str, ...] = ()
    case_sensitive: bool = True
    has_relationships: bool = True

    def spelled(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    def has_label(self, label: str) -> bool:
        spelled = self.spelled(label)
        return spelled in self.labels or spelled.startswith(self.label_beginnings)

    def has_property(self, name: str) -> bool:
        spelled = self.spelled(name)
        return spelled in self.properties or spelled.startswith(self.property_beginnings)


NEO4J = Reserved(
    labels=("NeedsEmbedding", "NothingToEmbed", "EmbedJob"),
    label_beginnings=("Embedded", "Embedding", "NeighbourChanged", "NeighbourExpanding"),
    property_beginnings=("embedding", "embedded", "_lock", "_new"),
)
SQLITE = Reserved(
    label_beginnings=("embedding_", "sqlite_"),
    properties=("needs_embedding", "nothing_to_embed", "created_at", "updated_at"),
    property_beginnings=("embedding_", "embedded"),
    case_sensitive=False,
    has_relationships=False,
)


def misfits(collection: Collection, store: Reserved) -> Iterator[tuple[str, str]]:
    """Each role whose name the store cannot use, and what it must be instead."""
    if store.has_label(collection.label):
        yield "label", f"be a label that the store does not use itself, got {collection.label!r}"
    for role, used in _properties(collection):
        for name in used:
            if store.has_property(name):
                yield role, f"be a property that the store does not use itself, got {name!r}"
    if collection.neighbours and not store.has_relationships:
        path = collection.neighbours[0]
        yield "text", f"name no path, because only Neo4j has relationships, got {str(path)!r}"
    for name in collection.html:
        if name not in collection.text_properties:
            yield "format", f"name properties of the text, got {name!r}"
    yield from _clashes(collection, store)


def refuse_misfits(collection: Collection, store: Reserved) -> None:
    """For a store whose mapping may not come from the settings."""
    problems = [f"The mapping's {role} must {must}." for role, must in misfits(collection, store)]
    if problems:
        raise ConfigurationError(problems)


def _properties(collection: Collection) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        ("key", (collection.key,)),
        ("name_property", (collection.name_property,)),
        ("type_property", (collection.type_property,)),
        ("text", collection.text_properties),
        ("valid_to", (collection.valid_to,)),
    )


def _clashes(collection: Collection, store: Reserved) -> Iterator[tuple[str, str]]:
    others = {
        store.spelled(name)
        for name in (
            collection.name_property,
            collection.type_property,
            *collection.text_properties,
        )
    }
    key, valid_to = store.spelled(collection.key), store.spelled(collection.valid_to)
    if key in others:
        yield "key", f"be another property than name, type and texts, got {collection.key!r}"
    if valid_to in others | {key}:
        yield (
            "valid_to",
            f"be another property than key, name, type and texts, got {collection.valid_to!r}",
        )
    for path in {n for n in collection.neighbours if collection.neighbours.count(n) > 1}:
        yield "text", f"name each path once, got {str(path)!r} again"
    seen: set[str] = set()
    for name in collection.text_properties:
        if store.spelled(name) in seen:
            yield "text", f"name each property once, got {name!r} again"
        seen.add(store.spelled(name))
    if not store.case_sensitive:
        yield from _mixed_cases(collection, store)


def _mixed_cases(collection: Collection, store: Reserved) -> Iterator[tuple[str, str]]:
    """Columns that differ only in case are one column, so it needs one spelling and one role."""
    columns = {
        store.spelled(name): name for name in (collection.type_property, collection.name_property)
    }
    if len(columns) < 2:
        yield (
            "type_property",
            f"be another property than the name, got {collection.type_property!r}",
        )
    for name in collection.text_properties:
        if columns.get(store.spelled(name), name) != name:
            yield "text", f"spell name and type as they are mapped, got {name!r}"
