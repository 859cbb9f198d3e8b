"""Before any request: which jobs need none, and which texts are left to embed."""

from __future__ import annotations

from dataclasses import dataclass, field

from embed_pipeline.errors import TransientError
from embed_pipeline.model.embedding import StoredVector, vector_problem
from embed_pipeline.model.entity import Entity
from embed_pipeline.model.job import EmbedJob
from embed_pipeline.worker.enqueue import enqueue_entities
from embed_pipeline.worker.failures import EMPTY, GONE, record_of
from embed_pipeline.worker.holding import Holding
from embed_pipeline.worker.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A held job, and the entity as it was read for it."""

    job: EmbedJob
    entity: Entity


@dataclass(slots=True, kw_only=True)
class Sorted:
    gone: list[EmbedJob] = field(default_factory=list)
    superseded: list[Task] = field(default_factory=list)
    empty: list[EmbedJob] = field(default_factory=list)
    embedded: list[EmbedJob] = field(default_factory=list)
    """The entity has the vector of this very version already."""
    reusable: list[tuple[Task, StoredVector]] = field(default_factory=list)
    """Somebody else has the same text, and its vector is paid for."""
    fresh: list[Task] = field(default_factory=list)


def sort_jobs(holding: Holding) -> Sorted:
    """Read the graph once for the whole batch and sort its jobs."""
    graph, model = holding.tools.graph, holding.tools.model
    jobs = holding.lease.jobs
    uids = [job.entity_uid for job in jobs]
    holding.entities = graph.read_entities(uids)
    stored = graph.embedded_versions(uids, model=model)
    found = Sorted()
    fresh: list[Task] = []
    for job in jobs:
        entity = holding.entities.get(job.entity_uid)
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
    _split_reusable(holding, fresh, found)
    return found


def _split_reusable(holding: Holding, fresh: list[Task], found: Sorted) -> None:
    paid_for = _paid_for(holding.tools, {task.job.version for task in fresh if not task.job.force})
    for task in fresh:
        stored = None if task.job.force else paid_for.get(task.job.version)
        if stored is None:
            found.fresh.append(task)
        else:
            found.reusable.append((task, stored))


def _paid_for(tools: Tools, versions: set[str]) -> dict[str, StoredVector]:
    """One that another program has spoilt is paid for again: the graph would refuse it."""
    if not versions:
        return {}
    dimensions = tools.provider.dimensions
    found = tools.graph.vectors_of_versions(versions, model=tools.model)
    return {
        version: stored
        for version, stored in found.items()
        if vector_problem(stored.vector, dimensions=dimensions) is None
    }


def settle_without_request(holding: Holding, found: Sorted) -> None:
    """End the jobs that need neither a request nor a vector."""
    holding.fail(found.gone, GONE)
    holding.fail(found.empty, EMPTY)
    supersede(holding, found.superseded)
    if found.embedded:
        holding.tally.reused += holding.complete(found.embedded, reason="already embedded")


def supersede(holding: Holding, tasks: list[Task]) -> None:
    """The text has moved on: queue its current version first, then end the old job."""
    if not tasks:
        return
    tools, jobs = holding.tools, [task.job for task in tasks]
    entities = [task.entity for task in tasks]
    try:
        enqueue_entities(tools.jobs, tools.graph, entities, model=tools.model)
    except TransientError as error:  # the next lease finds the same, and tries again
        holding.defer(jobs, record_of(error))
    else:
        holding.tally.superseded += holding.complete(jobs, reason="superseded")
