"""Jobs of another program in a long queue: without an end of lease, or without our fields."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embed_pipeline.domain.job import JobId, JobStatus
from embed_pipeline.stores.neo4j.queue.adoption import SAMPLE
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
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

LOOKS = 3
"""A whole circle in a queue of two samples and a half."""


@pytest.fixture(scope="module")
def queue_server(neo4j_queue: BedServer) -> Address:
    return prepared(neo4j_queue)


@pytest.fixture
def backend(queue_server: Address, clock: FakeClock) -> Iterator[Neo4jQueueBackend]:
    backend = Neo4jQueueBackend(queue_server, clock)
    backend.empty()
    backend.open_queue().database.write(
        lambda tx: tx.all(FOREIGN_JOBS, count=SAMPLE * 5 // 2), timeout=None
    )
    yield backend
    backend.close()


def leave_in_processing(backend: Neo4jQueueBackend, number: int) -> JobId:
    job_id = JobId(f"job-{number:06}")
    queue = backend.open_queue()
    queue.database.write(lambda tx: tx.all(LEFT_IN_PROCESSING, id=job_id))
    return job_id


@pytest.mark.parametrize("number", [1, SAMPLE, SAMPLE + 1, SAMPLE * 5 // 2])
def test_job_without_an_end_of_lease_is_recovered_wherever_it_lies(
    backend: Neo4jQueueBackend, number: int
) -> None:
    store = backend.open_store()
    job_id = leave_in_processing(backend, number)

    recovered = [store.recover_stale() for _ in range(LOOKS)]

    assert [job.id for recovery in recovered for job in recovery.jobs] == [job_id]
    job = store.get(job_id)
    assert job is not None
    assert job.status is JobStatus.PENDING


def test_what_a_look_finds_is_found_by_the_recovery_that_follows(
    backend: Neo4jQueueBackend,
) -> None:
    store = backend.open_store()
    job_id = leave_in_processing(backend, SAMPLE * 2)

    looks = _looks_until_found(store)
    recovered = store.recover_stale()

    assert looks <= LOOKS
    assert [job.id for job in recovered.jobs] == [job_id]
    assert not any(store.has_stale() for _ in range(LOOKS))


def test_jobs_written_after_set_up_are_all_taken_in_by_a_circle_of_looks(
    backend: Neo4jQueueBackend,
) -> None:
    store = backend.open_store()

    for _ in range(LOOKS):
        store.has_stale()

    adopted = [event.job_ids for event in store.events.recent(kind="jobs.adopted")]
    assert sorted(map(len, adopted)) == [SAMPLE // 2, SAMPLE, SAMPLE]
    assert len({job_id for job_ids in adopted for job_id in job_ids}) == SAMPLE * 5 // 2


def _looks_until_found(store: Neo4jJobStore) -> int:
    for look in range(1, LOOKS + 2):
        if store.has_stale():
            return look
    raise AssertionError("a whole circle of looks has found nothing")
