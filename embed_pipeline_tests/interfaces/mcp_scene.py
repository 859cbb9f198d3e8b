"""What an agent finds: entities, jobs that failed, and a look at the queue."""

from __future__ import annotations

from embed_pipeline.model.entity import NewEntity
from embed_pipeline.model.job import EmbedJob, EntityUid
from embed_pipeline.worker.force import force_embedding
from embed_pipeline.worker.tools import Tools
from embed_pipeline_tests.interfaces.past import failure

FORCE = "force_generate_embedding"


def add_unqueued(tools: Tools, *names: str) -> None:
    """As another program adds them: they are in the graph, and nobody has queued them."""
    new = [NewEntity(uid=EntityUid(name), name=name, entity_type="Thing") for name in names]
    tools.graph.create_entities(new, model=tools.model)


def park(tools: Tools, *names: str) -> None:
    """Entities whose only job failed for good."""
    add_unqueued(tools, *names)
    force_embedding(tools, limit=len(names))
    lease = tools.jobs.lease(owner="worker", model=tools.model, limit=1_000, token="t")
    report = tools.jobs.fail(lease, {job_id: failure() for job_id in lease.job_ids})
    assert len(report.failed) == len(names)


def queued(tools: Tools) -> tuple[EmbedJob, ...]:
    lease = tools.jobs.lease(owner="onlooker", model=tools.model, limit=2_000, token="look")
    tools.jobs.release(lease, lease.job_ids)
    return lease.jobs
