"""Before any request: which jobs need none, and which texts are left to embed."""

from __future__ import annotations

from dataclasses import dataclass, field

from embed_pipeline.domain.embedding import StoredVector, vector_problem
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EmbedJob
from embed_pipeline.errors import TransientError
from embed_pipeline.worker.batch import LeasedBatch
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.enqueue import enqueue_entities
from embed_pipeline.worker.failures import EMPTY, GONE, record_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A held job, and the entity as it was read for it."""

    job: EmbedJob
    entity: Entity


@dataclass(slots=True, kw_only=True)
class SortedJobs:
    gone: list[EmbedJob] = field(default_factory=list)
    superseded: list[Task] = field(default_factory=list)
    empty: list[EmbedJob] = field(default_factory=list)
    embedded: list[EmbedJob] = field(default_factory=list)
    """The entity has the vector of this very version already."""
    reusable: list[tuple[Task, StoredVector]] = field(default_factory=list)
    """Somebody else has the same text, and its vector is paid for."""
    fresh: list[Task] = field(default_factory=list)


def sort_jobs(batch: LeasedBatch) -> SortedJobs:
    """Read the graph once for the whole batch and sort its jobs."""
    graph, model = batch.services.graph, batch.services.model
    jobs = batch.lease.jobs
    uids = [job.entity_uid for job in jobs]
    batch.entities = graph.read_entities(uids)
    stored = graph.embedded_versions(uids, model=model)
    found = SortedJobs()
    fresh: list[Task] = []
    for job in jobs:
        entity = batch.entities.get(job.entity_uid)
        if entity is None or not entity.is_valid:
            found.gone.append(job)
        elif entity.version != job.version:
            found.superseded.append(Task(job=job, entity=entity))
        elif not entity.text.strip():
            found.empty.append(job)
        elif stored.get(job.entity_uid) == job.version and not job.force:
            found.embedded.append(job)
        else:
            fresh.append(Task(job=job, entity=entity))
    _split_reusable(batch, fresh, found)
    return found


def _split_reusable(batch: LeasedBatch, fresh: list[Task], found: SortedJobs) -> None:
    paid_for = _paid_for(batch.services, {task.job.version for task in fresh if not task.job.force})
    for task in fresh:
        stored = None if task.job.force else paid_for.get(task.job.version)
        if stored is None:
            found.fresh.append(task)
        else:
            found.reusable.append((task, stored))


def _paid_for(services: Services, versions: set[str]) -> dict[str, StoredVector]:
    """One that another program has spoilt is paid for again: the graph would refuse it."""
    if not versions:
        return {}
    dimensions = services.provider.dimensions
    found = services.graph.vectors_of_versions(versions, model=services.model)
    return {
        version: stored
        for version, stored in found.items()
        if vector_problem(stored.vector, dimensions=dimensions) is None
    }


def settle_without_request(batch: LeasedBatch, found: SortedJobs) -> None:
    """End the jobs that need neither a request nor a vector."""
    batch.fail(found.gone, GONE)
    batch.fail(found.empty, EMPTY)
    supersede(batch, found.superseded)
    if found.embedded:
        batch.tally.reused += batch.complete(found.embedded, reason="already embedded")


def supersede(batch: LeasedBatch, tasks: list[Task]) -> None:
    """The text has moved on: queue its current version first, then end the old job."""
    if not tasks:
        return
    services, jobs = batch.services, [task.job for task in tasks]
    entities = [task.entity for task in tasks]
    try:
        enqueue_entities(services.jobs, services.graph, entities, model=services.model)
    except TransientError as error:  # the next lease finds the same, and tries again
        batch.defer(jobs, record_of(error))
    else:
        batch.tally.superseded += batch.complete(jobs, reason="superseded")
