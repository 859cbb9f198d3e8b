"""Cancelling on Neo4j while others have their hands on the same jobs: each sees a whole step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from embed_pipeline.domain.job import EntityUid, JobId
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline_tests.contracts.job_store.scene import add_jobs, request, take
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.stores.neo4j_queue import DELETE_ALL, open_jobs, prepared

T = TypeVar("T")

HOLD_LOCK = "MATCH (lock:QueueLock {name: 'lease'}) SET lock._lock = true REMOVE lock._lock"

DELETE_JOB = "MATCH (job:EmbedJob {entity_uid: 'e0'}) DETACH DELETE job"
LEASE_JOB = """
MATCH (job:EmbedJob {entity_uid: 'e0'})
SET job.status = 'processing', job.lock_until = timestamp()
"""


@pytest.fixture
def store(neo4j_queue: BedServer) -> Iterator[Neo4jJobStore]:
    store = open_jobs(prepared(neo4j_queue))
    neo4j_queue.run(DELETE_ALL)
    yield store
    store.close()


def answered_behind(server: BedServer, statement: str, call: Callable[[], T]) -> T:
    """What the call answers that waits for somebody else's statement to be committed."""
    with (
        ThreadPoolExecutor() as threads,
        server.driver.session(database=server.database) as session,
        session.begin_transaction() as transaction,
    ):
        transaction.run(statement).consume()
        future = threads.submit(call)
        time.sleep(0.5)
        assert not future.done(), "it waits for the lock"
        transaction.commit()
        return future.result(timeout=30)


def test_enqueue_that_waits_for_a_cancelled_job_makes_a_new_one(
    store: Neo4jJobStore, neo4j_queue: BedServer
) -> None:
    add_jobs(store)

    answered_behind(neo4j_queue, DELETE_JOB, lambda: store.enqueue([request("e0", force=True)]))

    (job,) = store.history.of_entity(EntityUid("e0"))
    assert job.force


def test_cancel_that_waits_for_a_job_which_is_taken_leaves_it(
    store: Neo4jJobStore, neo4j_queue: BedServer
) -> None:
    add_jobs(store, 2)

    cancelled = answered_behind(neo4j_queue, LEASE_JOB, lambda: store.cancel())

    assert len(cancelled) == 1
    assert store.get_queue_status().processing == 1


def test_cancel_that_waits_for_a_job_which_is_gone_counts_the_others(
    store: Neo4jJobStore, neo4j_queue: BedServer
) -> None:
    add_jobs(store, 2)

    cancelled = answered_behind(neo4j_queue, DELETE_JOB, lambda: store.cancel())

    assert len(cancelled) == 1
    assert store.get_queue_status().total == 0


@pytest.mark.parametrize(
    ("call", "chosen"),
    [
        pytest.param(lambda store: take(store, 10).job_ids, 2, id="lease"),
        pytest.param(lambda store: store.cancel(), 2, id="cancel"),
        pytest.param(lambda store: store.cancel(entity_uid=EntityUid("e1")), 1, id="cancel one"),
    ],
)
def test_no_lease_chooses_while_somebody_cancels(
    store: Neo4jJobStore,
    neo4j_queue: BedServer,
    call: Callable[[Neo4jJobStore], tuple[JobId, ...]],
    chosen: int,
) -> None:
    """Both wait for the same node, which one alone can hold."""
    add_jobs(store, 2)

    answer = answered_behind(neo4j_queue, HOLD_LOCK, lambda: call(store))

    assert len(answer) == chosen
