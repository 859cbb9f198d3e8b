"""Races on one Neo4j queue, with real threads, real processes and the server's own clock."""

from __future__ import annotations

import json
import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import neo4j
import pytest

from embed_pipeline.domain.health import HealthRecord
from embed_pipeline.domain.job import Enqueued, JobStatus
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.domain.window import Grant, RateLimit, Spent
from embed_pipeline.stores.encoding import from_ms
from embed_pipeline.stores.neo4j.queue import rows
from embed_pipeline.stores.neo4j.queue.cypher import leased as cypher_holding
from embed_pipeline.stores.neo4j.queue.job_store import Neo4jJobStore
from embed_pipeline.stores.queue.documents import HEALTH
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline_tests.contracts.job_store.scene import (
    MODEL,
    add_jobs,
    leased_job,
    request,
    stored,
    take,
)
from embed_pipeline_tests.neo4j_bed.client import BedServer
from embed_pipeline_tests.neo4j_bed.server import Address
from embed_pipeline_tests.stores.neo4j_queue import DELETE_ALL, open_queue, prepared

PROCESSES = multiprocessing.get_context("spawn")
LIMIT = RateLimit(requests=5, interval=timedelta(milliseconds=600))
SHORT, LONG = timedelta(milliseconds=50), timedelta(minutes=5)
HOLD_LEASE_LOCK = "MATCH (lock:QueueLock {name: 'lease'}) SET lock._lock = true"
SET_HEALTH = "MERGE (state:QueueState {name: 'health'}) SET state.value = $value"
SERVER_TIME = "RETURN datetime.realtime().epochMillis AS now"
BACK_TO_PENDING = """
MATCH (job:EmbedJob {id: $id})
SET job.status = 'pending', job.rank = -job.priority
REMOVE job.lock_owner, job.lock_until, job.lease_token
"""

T = TypeVar("T")
OpenStore = Callable[..., Neo4jJobStore]


@pytest.fixture(scope="module")
def prepared_server(neo4j_queue: BedServer) -> Address:
    return prepared(neo4j_queue)


@pytest.fixture
def server(neo4j_queue: BedServer, prepared_server: Address) -> BedServer:
    neo4j_queue.run(DELETE_ALL)
    return neo4j_queue


@pytest.fixture
def open_store(server: BedServer) -> Iterator[OpenStore]:
    opened: list[Neo4jJobStore] = []

    def open_one(lock_duration: timedelta = LONG) -> Neo4jJobStore:
        policy = QueuePolicy(lock_duration=lock_duration)
        opened.append(Neo4jJobStore(open_queue(server.address), policy=policy))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@contextmanager
def uncommitted(server: BedServer) -> Iterator[neo4j.Transaction]:
    """A transaction of somebody else, whose locks are held until the block commits it."""
    with (
        server.driver.session(database=server.database) as session,
        session.begin_transaction() as transaction,
    ):
        yield transaction


def still_waiting(threads: ThreadPoolExecutor, call: Callable[[], T]) -> Future[T]:
    """The call, begun in a thread of its own; it waits for a lock that somebody holds."""
    future = threads.submit(call)
    time.sleep(0.5)
    assert not future.done()
    return future


def _lease_all(
    address: Address, process: int, batch: int, answers: multiprocessing.Queue[list[str]]
) -> None:
    store = Neo4jJobStore(open_queue(address))
    taken: list[str] = []

    def drain(thread: int) -> None:
        owner, call = f"{process}-{thread}", 0
        while jobs := store.lease(
            owner=owner, model=MODEL, limit=batch, token=f"{owner}-{call}"
        ).job_ids:
            taken.extend(jobs)
            call += 1

    threads = [threading.Thread(target=drain, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    answers.put(taken)


def lease_everything_once(
    address: Address, store: Neo4jJobStore, *, count: int, batch: int = 50
) -> None:
    add_jobs(store, count)
    answers: multiprocessing.Queue[list[str]] = PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_lease_all, args=(address, number, batch, answers))
        for number in range(2)
    ]
    for process in processes:
        process.start()

    taken = [job_id for _ in processes for job_id in answers.get(timeout=1_800)]
    for process in processes:
        process.join()

    doubled = [job_id for job_id, times in Counter(taken).items() if times > 1]
    assert (len(taken), doubled) == (count, [])
    assert store.get_queue_status().processing == count


def test_eight_threads_in_two_processes_lease_20_000_jobs_once_each(
    server: BedServer, open_store: OpenStore
) -> None:
    lease_everything_once(server.address, open_store(), count=20_000)


def test_recovery_racing_an_uncommitted_heartbeat_never_steals_the_live_lease(
    server: BedServer, open_store: OpenStore
) -> None:
    store = open_store(lock_duration=SHORT)
    lease, job_id = leased_job(store)
    time.sleep(0.2)  # the lease has ended, and its holder is about to extend it

    with uncommitted(server) as heartbeat, ThreadPoolExecutor() as threads:
        heartbeat.run(
            cypher_holding.EXTEND_JOBS,
            job_ids=[job_id],
            owner=lease.owner,
            token=lease.token,
            duration=rows.in_ms(LONG),
            now=None,
        ).consume()
        recovery = still_waiting(threads, store.recover_stale)
        heartbeat.commit()
        recovered = recovery.result(30)

    job = stored(store, job_id)
    assert recovered.jobs == ()
    assert (job.status, job.lock_owner, job.recoveries) == (JobStatus.PROCESSING, lease.owner, 0)
    assert store.complete(lease, [job_id]).done == (job_id,)


def test_heartbeat_racing_an_uncommitted_recovery_reports_the_lost_lease(
    server: BedServer, open_store: OpenStore
) -> None:
    store = open_store(lock_duration=SHORT)
    lease, job_id = leased_job(store)
    time.sleep(0.2)

    with uncommitted(server) as recovery, ThreadPoolExecutor() as threads:
        recovery.run(BACK_TO_PENDING, id=job_id).consume()
        heartbeat = still_waiting(threads, lambda: store.heartbeat(lease, [job_id]))
        recovery.commit()
        settled = heartbeat.result(30)

    assert settled.lost == (job_id,)
    assert stored(store, job_id).status is JobStatus.PENDING


def test_lease_that_waited_for_its_turn_is_as_long_as_any_other(
    server: BedServer, open_store: OpenStore
) -> None:
    store = open_store(lock_duration=timedelta(seconds=10))
    add_jobs(store)

    with uncommitted(server) as other, ThreadPoolExecutor() as threads:
        other.run(HOLD_LEASE_LOCK).consume()
        waiting = still_waiting(threads, lambda: take(store))
        time.sleep(1)
        (released_at,) = (row["now"] for row in server.run(SERVER_TIME))
        other.commit()
        (job,) = waiting.result(30).jobs

    assert job.lock_until is not None
    assert job.lock_until >= from_ms(released_at) + timedelta(seconds=10)


def test_completion_sees_the_health_that_it_waited_for(
    server: BedServer, open_store: OpenStore
) -> None:
    store = open_store()
    first, done = leased_job(store, uid="e0")
    store.complete(first, [done])
    lease, job_id = leased_job(store)
    trouble = json.dumps(HEALTH.encode(HealthRecord(consecutive_failures=3)))

    with uncommitted(server) as other, ThreadPoolExecutor() as threads:
        other.run(SET_HEALTH, value=trouble).consume()
        completion = still_waiting(threads, lambda: store.complete(lease, [job_id]))
        other.commit()
        completion.result(30)

    (event,) = store.events.recent(kind="health.recovered")
    assert event.facts["consecutive_failures"] == 3
    assert store.health.report().consecutive_failures == 0


def test_completion_and_late_completion_at_once_succeed_once(open_store: OpenStore) -> None:
    """A worker that lost its jobs, and the one that has them now."""
    store = open_store(lock_duration=SHORT)
    add_jobs(store, 200)
    late = take(store, 200, owner="worker-a")
    time.sleep(0.2)
    assert len(store.recover_stale().jobs) == 200
    current = take(open_store(), 200, owner="worker-b")

    with ThreadPoolExecutor() as threads:
        lost = threads.submit(store.complete, late, late.job_ids)
        done = threads.submit(store.complete, current, current.job_ids)

    assert len(done.result().done) == 200
    assert lost.result().done == ()
    assert store.counters.read()["jobs_completed"] == 200


def test_overlapping_enqueues_in_any_order_create_each_job_once(open_store: OpenStore) -> None:
    requests = [request(f"e{n}", force=n % 5 == 0) for n in range(300)]
    stores = [open_store() for _ in range(4)]
    start = threading.Barrier(len(stores))

    def enqueue(store: Neo4jJobStore) -> tuple[Enqueued, ...]:
        mine = random.sample(requests, len(requests))
        start.wait()
        return store.enqueue(mine).outcomes

    with ThreadPoolExecutor() as threads:
        outcomes = [outcome for found in threads.map(enqueue, stores) for outcome in found]

    assert Counter(outcomes) == {Enqueued.CREATED: 300, Enqueued.QUEUED: 900}
    assert stores[0].get_queue_status().total == 300
    assert stores[0].counters.read()["jobs_enqueued"] == 300


def _take_grants(address: Address, answers: multiprocessing.Queue[list[Grant]]) -> None:
    limiter = SharedRateLimiter(open_queue(address), provider="openai", limit=LIMIT)
    takes = [limiter.take(Spent(requests=1)) for _ in range(100)]
    limiter.close()
    answers.put([grant for grant in takes if isinstance(grant, Grant)])


def _most_in_any_window(grants: list[Grant]) -> int:
    """By the grants' buckets: the finest time that is stored."""
    starts = sorted(grant.bucket for grant in grants)
    return max(
        (sum(start <= other <= start + LIMIT.interval for other in starts) for start in starts),
        default=0,
    )


def test_four_processes_never_overdraw_any_window(server: BedServer) -> None:
    answers: multiprocessing.Queue[list[Grant]] = PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_take_grants, args=(server.address, answers)) for _ in range(4)
    ]
    for process in processes:
        process.start()

    grants = [grant for _ in processes for grant in answers.get(timeout=120)]
    for process in processes:
        process.join()

    assert len(grants) >= LIMIT.requests
    assert _most_in_any_window(grants) <= LIMIT.requests
