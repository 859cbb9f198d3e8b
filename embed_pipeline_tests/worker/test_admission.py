"""Before each request: what is asked of the queue, and what is not."""

from __future__ import annotations

from embed_pipeline.worker.admission import Admitted, admit
from embed_pipeline.worker.batch import Task
from embed_pipeline.worker.packing import pack
from embed_pipeline_tests.worker.conftest import Build


def test_request_costs_one_read_of_the_queue_and_one_grant(
    build: Build, transactions: list[str]
) -> None:
    world = build(requests=10)
    world.fill(1)
    lease = world.lease()
    (job,) = lease.jobs
    entity = world.graph.read_entities([job.entity_uid])[job.entity_uid]
    (request,) = pack([Task(job=job, entity=entity)], provider=world.provider, budget=None)
    transactions.clear()

    admitted = admit(world.services, request, lease)

    assert isinstance(admitted, Admitted)
    assert transactions == ["read of queue", "queue"]
