"""Tools that change the graph's embeddings: create entities, embed them anew."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field, model_validator

from embed_pipeline.domain.entity import NewEntity, TextValue
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.interfaces.mcp.tool import AgentTool, Answer, Arguments, Shape
from embed_pipeline.usecases.entities import create as creating
from embed_pipeline.usecases.entities import force as forcing
from embed_pipeline.worker.context import Services

MOST_ENTITIES = 500
"""Of one call: a transaction of milliseconds, and an answer that fits a model's context."""


class ForceArguments(Arguments):
    entity_name: str | None = Field(default=None, min_length=1)
    """The exact name of one entity to embed anew. When it is given, `limit` is ignored."""
    key: str | None = Field(default=None, min_length=1)
    """The key of one entity, where several share a name. When it is given, `limit` is ignored."""
    limit: int = Field(default=forcing.DEFAULT_LIMIT, ge=1)
    """Without a name or key: queue at most so many entities without a vector; capped at 1000."""

    @model_validator(mode="before")
    @classmethod
    def ignore_the_limit_beside_a_name(cls, given: Any) -> Any:
        """Ignored means ignored: a limit that would be refused alone does no harm here."""
        named = any(given.get(name) is not None for name in ("entity_name", "key"))
        return {name: given[name] for name in given if name != "limit"} if named else given


class ForceAnswer(Answer):
    discovered: int
    """Entities found: the one that was named, or those without a vector."""
    queued: int
    """Jobs that are new, or forced now."""


def _force(services: Services, given: ForceArguments) -> ForceAnswer:
    report = forcing.force_embedding(
        services,
        entity_name=given.entity_name,
        key=None if given.key is None else EntityUid(given.key),
        limit=given.limit,
    )
    return ForceAnswer(message=report.message, discovered=report.discovered, queued=report.queued)


FORCE = AgentTool(
    name="force_generate_embedding",
    title="Force an embedding",
    description=(
        "Queue embedding jobs, in one of two modes. With `entity_name` (or `key`): one job for "
        "that entity, even if it has a vector or its job failed; `limit` is ignored. Without: "
        "batch repair, which finds up to `limit` entities that have no vector and queues them; "
        "it passes over those that are queued already or failed before, and never loads the "
        "whole graph. The vectors are made in the background: ask `embedding_status`."
    ),
    arguments=ForceArguments,
    answer=ForceAnswer,
    run=_force,
    changes=True,
    repeatable=False,
)


class EntityArgument(Shape):
    name: str = Field(min_length=1)
    """The entity's name."""
    # The graph's own spelling is taken too: models have seen it in its data.
    entity_type: str = Field(default="", validation_alias=AliasChoices("entity_type", "entityType"))
    """Its type, such as Person or Place."""
    observations: list[str] = Field(default_factory=list)
    """What is known of it, a sentence each. This is the text that search understands."""
    properties: dict[str, str | list[str]] = Field(default_factory=dict)
    """Other text properties, for a graph whose settings name some (EMBED_ENTITY_TEXT)."""
    key: str | None = Field(default=None, min_length=1)
    """Its key; left out, the key is derived from name and type."""

    def as_new(self) -> NewEntity:
        properties: dict[str, TextValue] = {
            name: value if isinstance(value, str) else tuple(value)
            for name, value in self.properties.items()
        }
        if self.observations:
            properties["observations"] = tuple(self.observations)
        return NewEntity(
            name=self.name,
            entity_type=self.entity_type,
            properties=properties,
            uid=None if self.key is None else EntityUid(self.key),
        )


class CreateArguments(Arguments):
    entities: list[EntityArgument] = Field(min_length=1, max_length=MOST_ENTITIES)
    """The entities to create."""


class CreatedEntity(Shape):
    key: str
    """What the entity is known by."""
    name: str
    """Its name."""
    existing: bool
    """It was there before, and was left as it was."""


class CreateAnswer(Answer):
    created: int
    """Entities that are new."""
    queued: bool
    """False when the queue could not be reached: the entities are saved, discovery queues them."""
    entities: list[CreatedEntity]
    """What became of each, in the order they were given."""


def _create(services: Services, given: CreateArguments) -> CreateAnswer:
    new = [entity.as_new() for entity in given.entities]
    report = creating.create_entities(services.jobs, services.graph, new, model=services.model)
    message = f"{report.created} created, each with its embedding job."
    if not report.queued:
        message = (
            f"{report.created} created. The queue cannot be reached now: discovery will queue "
            "their embeddings when it is back."
        )
    if existing := len(report.entities) - report.created:
        message += f" {existing} existed before, left as found."
    return CreateAnswer(
        message=message,
        created=report.created,
        queued=report.queued,
        entities=[
            CreatedEntity(key=made.entity.uid, name=made.entity.name, existing=made.existing)
            for made in report.entities
        ],
    )


CREATE = AgentTool(
    name="create_entities",
    title="Create entities",
    description=(
        "Save new entities in the knowledge graph and queue exactly one embedding job for each. "
        "Takes milliseconds and calls no embedding provider: vectors follow in the background. "
        "An entity that exists already is reported as existing and left as it is."
    ),
    arguments=CreateArguments,
    answer=CreateAnswer,
    run=_create,
    changes=True,
)
