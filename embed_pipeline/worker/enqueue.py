"""Enqueue entities: at most one job per version, with what the graph says of its vector."""

from __future__ import annotations

from collections.abc import Sequence

from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import DEFAULT_PRIORITY, EnqueueReport, JobRequest
from embed_pipeline.ports.entity_store import EntityStore
from embed_pipeline.ports.job_store import JobStore


def enqueue_entities(
    jobs: JobStore,
    graph: EntityStore,
    entities: Sequence[Entity],
    *,
    model: str,
    force: bool = False,
    priority: int = DEFAULT_PRIORITY,
) -> EnqueueReport:
    if not entities:
        return EnqueueReport()
    embedded = graph.embedded_versions([entity.uid for entity in entities], model=model)
    return jobs.enqueue(
        [
            JobRequest(
                entity_uid=entity.uid,
                model=model,
                version=(version := entity.version),
                priority=priority,
                force=force,
                embedded=embedded.get(entity.uid) == version,
            )
            for entity in entities
        ]
    )
