"""Entities together with their vectors, page by page, for programs that compute with them."""

from __future__ import annotations

from collections.abc import Iterator

from embed_pipeline.domain.embedding import Vector
from embed_pipeline.domain.entity import Entity
from embed_pipeline.worker.context import Services

PAGE = 1_000


def embedded_entities(
    services: Services, *, entity_type: str | None = None
) -> Iterator[tuple[Entity, Vector | None]]:
    """The valid entities by key, all or those of one type. Reads the whole graph.

    The vector is None while the current text has none.
    """
    graph, after = services.graph, None
    while page := graph.next_entities(limit=PAGE, after=after):
        after = page[-1].uid
        wanted = [
            each for each in page if each.is_valid and entity_type in (None, each.entity_type)
        ]
        versions = {entity.version for entity in wanted}
        vectors = graph.vectors_of_versions(versions, model=services.model) if versions else {}
        for entity in wanted:
            stored = vectors.get(entity.version)
            yield entity, stored.vector if stored else None
