"""Tools that queue embeddings: create or refresh entities, force an embedding."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import AliasChoices, Field, model_validator

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recipe import TextValue
from embed_pipeline.interfaces.mcp.tool import AgentTool, Answer, Arguments, Limit, Shape
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.usecases.entities.force import DEFAULT_LIMIT, force_embedding
from embed_pipeline.usecases.entities.refresh import refresh
from embed_pipeline.worker.context import Services

MOST_ENTITIES = 500
"""Per call: it takes milliseconds, and the answer fits into the context of a model."""


class ForceArguments(Arguments):
    entity_name: str | None = Field(default=None, min_length=1)
    """The exact name of one entity to embed again. If given, `limit` is ignored."""
    key: str | None = Field(default=None, min_length=1)
    """The key of one entity, if several have the same name. If given, `limit` is ignored."""
    limit: Limit = DEFAULT_LIMIT
    """Without a name or key: queue at most this many entities without a vector; at most 1000."""

    @model_validator(mode="before")
    @classmethod
    def ignore_the_limit_beside_a_name(cls, given: Any) -> Any:
        """Also a limit that would be refused on its own."""
        named = any(given.get(name) is not None for name in ("entity_name", "key"))
        return {name: given[name] for name in given if name != "limit"} if named else given


class ForceAnswer(Answer):
    discovered: int
    """Entities found: the named one, or those without a vector."""
    queued: int
    """Jobs that are new or forced by this call."""


def _force(services: Services, given: ForceArguments) -> ForceAnswer:
    report = force_embedding(
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
        "batch repair, which finds up to `limit` entities without a vector and queues them; "
        "it skips entities that are already queued or failed before, and reads at most ten "
        "times `limit`. The vectors are made in the background: see `embedding_status`."
    ),
    arguments=ForceArguments,
    answer=ForceAnswer,
    run=_force,
    changes=True,
    repeatable=False,
)


class EntityArgument(Arguments):
    name: str = Field(min_length=1)
    """The entity's name."""
    # The spelling of the graph is accepted too: models have seen it in the data.
    entity_type: str = Field(default="", validation_alias=AliasChoices("entity_type", "entityType"))
    """Its type, such as Person or Place."""
    observations: list[str] = Field(default_factory=list)
    """What is known about it, one sentence each. This is the text that is searched."""
    properties: dict[str, str | list[str]] = Field(default_factory=dict)
    """Other text properties, if the settings name some (EMBED_ENTITY_TEXT)."""
    key: str | None = Field(default=None, min_length=1)
    """Its key. If left out, it is derived from name and type."""

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
    """The key of the entity."""
    name: str
    """Its name."""
    existing: bool
    """It existed before and was not changed."""


class CreateAnswer(Answer):
    created: int
    """Entities that are new."""
    queued: bool
    """False if the queue was unreachable: the entities are stored, discovery queues them."""
    entities: list[CreatedEntity]
    """The result for each, in the order given."""


def _create(services: Services, given: CreateArguments) -> CreateAnswer:
    new = [entity.as_new() for entity in given.entities]
    report = create_entities(services.jobs, services.graph, new, model=services.model)
    message = f"{report.created} created, each with its embedding job."
    if not report.queued:
        message = (
            f"{report.created} created. The queue is unreachable: discovery will queue their "
            "embeddings when it is back."
        )
    if existing := len(report.entities) - report.created:
        message += f" {existing} existed before and were not changed."
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
        "An entity that already exists is reported as existing and not changed."
    ),
    arguments=CreateArguments,
    answer=CreateAnswer,
    run=_create,
    changes=True,
)


class RefreshArguments(Arguments):
    entities: list[str] = Field(min_length=1, max_length=MOST_ENTITIES)
    """Keys, or exact names, of the entities that were changed."""


class RefreshAnswer(Answer):
    queued: int
    """Entities with an embedding job that waits, new or queued before."""
    unchanged: int
    """Entities whose vector is that of their text."""
    nothing_to_embed: int
    """Entities without any text."""
    excluded: int
    """Deleted entities, and others that are not embedded."""
    parked: int
    """Entities whose job failed with this very text."""
    unknown: int
    """Names that no entity has, as key or as name."""
    unknown_names: list[str]
    """The first of them."""
    queue_reached: bool
    """False if the queue was unreachable: what has changed is marked, discovery queues it."""


def _refresh(services: Services, given: RefreshArguments) -> RefreshAnswer:
    report = refresh(services, given.entities)
    message = f"{report.queued} queued, {report.unchanged} unchanged, {report.unknown} unknown."
    if not report.queue_reached:
        message += " The queue is unreachable: discovery will queue what has changed."
    return RefreshAnswer(message=message, **asdict(report))


REFRESH = AgentTool(
    name="refresh_entities",
    title="Refresh entities",
    description=(
        "Tell the pipeline that entities were changed in the graph by another program: those whose "
        "text has changed since they were embedded are queued, the others are left alone. "
        f"Takes keys or exact names, at most {MOST_ENTITIES} in a call."
    ),
    arguments=RefreshArguments,
    answer=RefreshAnswer,
    run=_refresh,
    changes=True,
)
