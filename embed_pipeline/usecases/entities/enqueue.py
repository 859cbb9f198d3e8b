"""Enqueue entities: at most one job per version, none for a vector that is there already.

An entity without text gets no job: it has nothing to embed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import DEFAULT_PRIORITY, EnqueueReport, EntityUid, JobRequest
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore


def enqueue_entities(
    jobs: JobStore, graph: EntityStore, entities: Sequence[Entity], *, model: str
) -> EnqueueReport:
    """Read which entities have the vector of their text already, then enqueue."""
    entities = [entity for entity in entities if entity.text]
    if not entities:
        return EnqueueReport()
    versions = graph.embedded_versions([entity.uid for entity in entities], model=model)
    embedded = {entity.uid for entity in entities if versions.get(entity.uid) == entity.version}
    return enqueue_known(jobs, entities, embedded=embedded, model=model)


def enqueue_known(
    jobs: JobStore,
    entities: Sequence[Entity],
    *,
    embedded: Collection[EntityUid],
    model: str,
    force: bool = False,
    priority: int = DEFAULT_PRIORITY,
) -> EnqueueReport:
    """For a caller that knows which entities are `embedded`: the graph is not read again."""
    requests = [
        JobRequest(
            entity_uid=entity.uid,
            model=model,
            version=entity.version,
            priority=priority,
            force=force,
            embedded=entity.uid in embedded,
        )
        for entity in entities
        if entity.text and not entity.erased
    ]
    return jobs.enqueue(requests) if requests else EnqueueReport()
