"""Tools that change entities which exist: update them, or delete them."""

from __future__ import annotations

from pydantic import Field

from embed_pipeline.domain.job import EntityUid
from embed_pipeline.errors import RequestError
from embed_pipeline.interfaces.mcp.tool import AgentTool, Answer, Arguments, Shape
from embed_pipeline.interfaces.mcp.tools.entities import MOST_ENTITIES, EntityArgument
from embed_pipeline.usecases.entities.create import upsert_entities
from embed_pipeline.worker.context import Services


class UpsertArguments(Arguments):
    entities: list[EntityArgument] = Field(min_length=1, max_length=MOST_ENTITIES)
    """The entities to create or to change."""


class UpsertedEntity(Shape):
    key: str
    """The key of the entity."""
    name: str
    """Its name."""
    existing: bool
    """It existed before."""
    changed: bool
    """It is new, or this call changed it."""


class UpsertAnswer(Answer):
    created: int
    """Entities that are new."""
    changed: int
    """Existing entities that were changed."""
    queued: bool
    """False if the queue was unreachable: the entities are stored, discovery queues them."""
    entities: list[UpsertedEntity]
    """The result for each, in the order given."""


def _upsert(services: Services, given: UpsertArguments) -> UpsertAnswer:
    new = [entity.as_new() for entity in given.entities]
    report = upsert_entities(services.jobs, services.graph, new, model=services.model)
    message = (
        f"{report.created} created, {report.changed} changed, {report.unchanged} as they were."
    )
    if not report.queued:
        message += " The queue is unreachable: discovery will queue embeddings when it is back."
    return UpsertAnswer(
        message=message,
        created=report.created,
        changed=report.changed,
        queued=report.queued,
        entities=[
            UpsertedEntity(
                key=made.entity.uid,
                name=made.entity.name,
                existing=made.existing,
                changed=made.changed,
            )
            for made in report.entities
        ],
    )


UPSERT = AgentTool(
    name="upsert_entities",
    title="Create or change entities",
    description=(
        "Save entities, new or changed. What is given replaces what is stored (all observations, "
        "for example); what is left out stays. A deleted entity is revived. Each new or changed "
        "text queues one embedding job."
    ),
    arguments=UpsertArguments,
    answer=UpsertAnswer,
    run=_upsert,
    changes=True,
    overwrites=True,
)


class DeleteArguments(Arguments):
    keys: list[str] = Field(min_length=1, max_length=MOST_ENTITIES)
    """The keys of the entities to delete; names are not accepted."""
    confirm: bool = Field(strict=True)
    """Must be true: only after the person you work for has agreed to delete these entities."""


class DeleteAnswer(Answer):
    deleted: list[str]
    """The keys of the entities that this call deleted."""
    not_found: list[str]
    """Keys of no entity, or of one that was deleted before."""


def _delete(services: Services, given: DeleteArguments) -> DeleteAnswer:
    if not given.confirm:
        raise RequestError("Nothing was deleted: confirm must be true.")
    deleted = services.graph.soft_delete([EntityUid(key) for key in given.keys])
    not_found = [key for key in given.keys if key not in deleted]
    message = f"{len(deleted)} deleted."
    if not_found:
        message += f" {len(not_found)} keys belong to no entity, or to one deleted before."
    return DeleteAnswer(message=message, deleted=list(deleted), not_found=not_found)


DELETE = AgentTool(
    name="delete_entities",
    title="Delete entities",
    description=(
        "Delete entities by key, with `confirm` true. They stay in the graph, marked as deleted, "
        "but no search finds them; `upsert_entities` with the same key revives one."
    ),
    arguments=DeleteArguments,
    answer=DeleteAnswer,
    run=_delete,
    changes=True,
    overwrites=True,
)
