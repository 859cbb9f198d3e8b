"""Entities together with their vectors, page by page, for programs that compute with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from embed_pipeline.domain.embedding import Vector
from embed_pipeline.domain.entity import Entity
from embed_pipeline.worker.context import Services

PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedEntity:
    entity: Entity
    vector: Vector | None
    """None while the current text has no vector."""


def embedded_entities(
    services: Services, *, entity_type: str | None = None
) -> Iterator[EmbeddedEntity]:
    """The valid entities by key, all or those of one type. Reads the whole graph."""
    graph, model = services.graph, services.model
    after = None
    while page := graph.next_entities(limit=PAGE, after=after):
        after = page[-1].uid
        wanted = [
            entity
            for entity in page
            if entity.is_valid and entity_type in (None, entity.entity_type)
        ]
        versions = {entity.version for entity in wanted}
        vectors = graph.vectors_of_versions(versions, model=model) if versions else {}
        for entity in wanted:
            stored = vectors.get(entity.version)
            yield EmbeddedEntity(entity=entity, vector=stored.vector if stored else None)
