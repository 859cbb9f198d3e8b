"""A look before discovery is worth a run: does every entity have its vector or a job?"""

from __future__ import annotations

from embed_pipeline.domain.embedding import VectorDefect
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import ENTITY_GONE, EmbedJob, EntityUid, JobStatus
from embed_pipeline.worker.context import Services

PAGE = 500

MOST_READ = 10_000
"""Entities that a look reads: the start of a run costs more than that."""

MOST_ASKED = 20
"""Entities without a good vector whose jobs a look asks for, one by one."""


def has_gaps(services: Services, *, most_read: int = MOST_READ) -> bool:
    """Whether discovery may find something; False only where every entity was looked at.

    Nothing less proves it: other programs write entities without our marker, and change texts
    under vectors that are there.
    """
    flawed: list[Entity] = []
    after: EntityUid | None = None
    for _ in range(0, most_read, PAGE):
        page = services.graph.walk(
            model=services.model,
            defects=frozenset(VectorDefect),
            after=after,
            size=min(PAGE, most_read),
        )
        flawed += [candidate.entity for candidate in page.candidates]
        if len(flawed) > MOST_ASKED:
            return True
        after = page.next_after
        if after is None:
            return not all(_has_job(services, entity) for entity in flawed)
    return True


def _has_job(services: Services, entity: Entity) -> bool:
    """Of its present text; one that discovery would pass by."""
    return any(
        job.version == entity.version and job.model == services.model and _stays(job)
        for job in services.jobs.history.of_entity(entity.uid)
    )


def _stays(job: EmbedJob) -> bool:
    if job.status is JobStatus.FAILED:
        return job.fail_code != ENTITY_GONE
    return job.status is not JobStatus.COMPLETED
