"""What an agent finds: entities, jobs that failed, and a look at the queue."""

from __future__ import annotations

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EmbedJob, EntityUid
from embed_pipeline.usecases.entities.force import force_embedding
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.past import failure

FORCE = "force_generate_embedding"


def add_unqueued(services: Services, *names: str) -> None:
    """As another program adds them: they are in the graph, and nobody has queued them."""
    new = [NewEntity(uid=EntityUid(name), name=name, entity_type="Thing") for name in names]
    services.graph.create_entities(new, model=services.model)


def park(services: Services, *names: str) -> None:
    """Entities whose only job failed for good."""
    add_unqueued(services, *names)
    force_embedding(services, limit=len(names))
    lease = services.jobs.lease(owner="worker", model=services.model, limit=1_000, token="t")
    report = services.jobs.fail(lease, {job_id: failure() for job_id in lease.job_ids})
    assert len(report.failed) == len(names)


def queued(services: Services) -> tuple[EmbedJob, ...]:
    lease = services.jobs.lease(owner="onlooker", model=services.model, limit=2_000, token="look")
    services.jobs.release(lease, lease.job_ids)
    return lease.jobs
