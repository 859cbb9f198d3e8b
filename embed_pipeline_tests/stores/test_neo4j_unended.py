"""Jobs of another program without an end of lease, in a queue that holds many others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.domain.job import JobId, JobStatus
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores.neo4j_queue import Neo4jQueueBackend, prepared

# Ids that no hexadecimal number is behind.
FOREIGN_JOBS = """
UNWIND range(1, $count) AS number
CREATE (:EmbedJob {
    id: 'job-' + right('000000' + toString(number), 6), entity_uid: 'e' + toString(number),
    model: 'mock/mock@64', version: 'v', status: 'completed', processed_at: 1, created_at: 1
})
"""

LEFT_IN_PROCESSING = """
MATCH (job:EmbedJob {id: $id}) SET job.status = 'processing', job.lock_owner = 'gone'
"""

NUMBER = 2_500


@pytest.fixture(scope="module")
def queue_server(neo4j_queue: BedServer) -> Address:
    return prepared(neo4j_queue)


@pytest.fixture
def backend(queue_server: Address, clock: FakeClock) -> Iterator[Neo4jQueueBackend]:
    backend = Neo4jQueueBackend(queue_server, clock)
    backend.empty()
    backend.open_queue().database.write(lambda tx: tx.all(FOREIGN_JOBS, count=NUMBER), timeout=None)
    yield backend
    backend.close()


def leave_in_processing(backend: Neo4jQueueBackend, number: int) -> JobId:
    job_id = JobId(f"job-{number:06}")
    queue = backend.open_queue()
    queue.database.write(lambda tx: tx.all(LEFT_IN_PROCESSING, id=job_id))
    return job_id


@pytest.mark.parametrize("number", [1, NUMBER // 2, NUMBER])
def test_job_without_an_end_of_lease_is_recovered_wherever_it_lies(
    backend: Neo4jQueueBackend, number: int
) -> None:
    store = backend.open_store()
    job_id = leave_in_processing(backend, number)

    stale = store.has_stale()
    recovered = store.recover_stale()

    assert stale
    assert [job.id for job in recovered.jobs] == [job_id]
    assert not store.has_stale()
    job = store.get(job_id)
    assert job is not None
    assert job.status is JobStatus.PENDING
