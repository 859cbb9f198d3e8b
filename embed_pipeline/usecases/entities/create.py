"""Create or update entities in the graph, then enqueue a job for each new or changed text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from embed_pipeline.domain.embedding import Created
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EnqueueReport
from embed_pipeline.errors import CriticalError, TransientError
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.entities.enqueue import enqueue_known


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateReport:
    entities: tuple[Created, ...] = ()
    jobs: EnqueueReport = field(default_factory=EnqueueReport)
    queued: bool = True
    """False: the queue could not be reached; discovery will queue these entities."""

    @property
    def created(self) -> int:
        return sum(not made.existing for made in self.entities)

    @property
    def changed(self) -> int:
        return sum(made.existing and made.changed for made in self.entities)

    @property
    def unchanged(self) -> int:
        return len(self.entities) - self.created - self.changed


def create_entities(
    jobs: JobStore, graph: EntityStore, entities: Sequence[NewEntity], *, model: str
) -> CreateReport:
    """An existing entity is left as it is, and reported as existing."""
    return _queue_new(jobs, graph, graph.create_entities(entities, model=model), model=model)


def upsert_entities(
    jobs: JobStore, graph: EntityStore, entities: Sequence[NewEntity], *, model: str
) -> CreateReport:
    """An existing entity is updated; a changed text queues a job for its new version."""
    return _queue_new(jobs, graph, graph.upsert_entities(entities, model=model), model=model)


def _queue_new(
    jobs: JobStore, graph: EntityStore, made: tuple[Created, ...], *, model: str
) -> CreateReport:
    # By key: of an entity that was passed twice, only the last text is stored.
    new = {one.entity.uid: one for one in made if not one.existing or one.changed}
    emit("entities.created", count=len(new), existing=len(made) - len(new))
    try:
        report = enqueue_known(
            jobs,
            [one.entity for one in new.values()],
            embedded={uid for uid, one in new.items() if one.embedded},
            model=model,
        )
    except (TransientError, CriticalError) as error:
        # The entities are stored with the marker, so discovery finds and queues them.
        emit("entities.queue_unavailable", count=len(new), error=error)
        return CreateReport(entities=made, queued=False)
    # A marker that stays costs discovery a look, so a graph that is busy is no reason to fail.
    queued = {uid: one.entity.version for uid, one in new.items() if one.entity.text}
    with suppress(TransientError, CriticalError):
        if queued:
            graph.exchange_markers(queued)
    return CreateReport(entities=made, jobs=report)
