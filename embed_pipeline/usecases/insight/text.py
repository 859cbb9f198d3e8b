"""The text of an entity exactly as it is sent to the provider, with its tokens. Sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embed_pipeline.domain.embedding import check_limit
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.usecases.entities.named import find_entity
from embed_pipeline.worker.context import Services

MOST_PREVIEWED = 100
LONGEST_EXCERPT = 1_000
"""Characters of a text in an answer: an entity can hold megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityText:
    """What is embedded of an entity; empty if it has nothing to embed."""

    entity: Entity
    text: str
    tokens: int
    """What it counts against the provider's limits."""
    truncated: bool
    """It was cut to the limit of one input; the rest is not embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    texts: tuple[EntityText, ...]
    examined: int
    """Valid entities that were read, in the order of their keys."""
    empty: int
    """Of these, how many have nothing to embed."""


def text_of(
    services: Services, *, name: str | None = None, key: EntityUid | None = None
) -> EntityText:
    """The text of one valid entity; several of that name are refused with their keys."""
    entity = find_entity(services.graph, name=name, key=key)
    (found,) = _fitted(services.provider, [entity])
    return found


def preview(services: Services, *, limit: int = 5) -> Preview:
    """The first texts by key, from the first hundred entities."""
    check_limit(limit, most=MOST_PREVIEWED)
    read = services.graph.next_entities(limit=MOST_PREVIEWED)
    valid = [entity for entity in read if entity.is_valid]
    with_text = [entity for entity in valid if entity.text]
    return Preview(
        texts=tuple(_fitted(services.provider, with_text[:limit])),
        examined=len(valid),
        empty=len(valid) - len(with_text),
    )


def excerpt(text: str, longest: int = LONGEST_EXCERPT) -> str:
    """The beginning of a text, for an answer that must not grow with it."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _fitted(provider: EmbeddingProvider, entities: Sequence[Entity]) -> list[EntityText]:
    fitted = provider.fit([entity.text for entity in entities])
    return [
        EntityText(entity=entity, text=one.text, tokens=one.tokens, truncated=one.truncated)
        for entity, one in zip(entities, fitted, strict=True)
    ]
