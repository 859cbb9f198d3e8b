"""Races on one PostgreSQL queue: threads, processes, other transactions, deadlocks, a fork."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

from embed_pipeline.domain.health import HealthRecord
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.recovery import QueuePolicy
from embed_pipeline.stores.config import Server
from embed_pipeline.stores.postgres.connection import Connection, PostgresDatabase
from embed_pipeline.stores.queue.documents import HEALTH
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline_tests.contracts.job_store.scene import (
    MODEL,
    add_jobs,
    leased_job,
    stored,
    take,
)
from embed_pipeline_tests.stores import queue_races
from embed_pipeline_tests.stores.postgres_queue import open_jobs, own_schema
from embed_pipeline_tests.stress.hammer import POLICY, hammer

SHORT, LONG = timedelta(milliseconds=50), timedelta(minutes=5)
T = TypeVar("T")
Run = Callable[..., Any]


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    with own_schema(postgres_url) as server:
        yield server


@pytest.fixture
def open_store(server: Server) -> Iterator[Callable[..., QueueJobStore]]:
    opened: list[QueueJobStore] = []

    def open_one(lock_duration: timedelta = LONG) -> QueueJobStore:
        opened.append(open_jobs(server, policy=QueuePolicy(lock_duration=lock_duration)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@contextmanager
def uncommitted(url: str, server: Server) -> Iterator[Run]:
    """A transaction of another session, whose locks are held until the block ends."""
    with psycopg.connect(url) as connection:

        def run(statement: str, *parameters: object) -> None:
            tables = (
                sql.Identifier(server.schema, "embed_job"),
                sql.Identifier(server.schema, "shared_state"),
            )
            text = sql.SQL(statement).format(jobs=tables[0], states=tables[1])
            connection.execute(text, parameters)

        yield run


def still_waiting(threads: ThreadPoolExecutor, call: Callable[[], T]) -> Future[T]:
    """The call, begun in a thread of its own; it waits for a lock of the other session."""
    future = threads.submit(call)
    time.sleep(0.3)
    assert not future.done()
    return future


def test_eight_threads_in_two_processes_lease_20_000_jobs_once_each(server: Server) -> None:
    queue_races.lease_everything_once(partial(open_jobs, server), count=20_000, batch=50)


def test_four_processes_never_overdraw_any_window(server: Server) -> None:
    queue_races.take_grants_in_four_processes(partial(open_jobs, server), takes=100)


def test_overlapping_enqueues_in_any_order_create_each_job_once(server: Server) -> None:
    queue_races.enqueue_the_same_in_any_order(partial(open_jobs, server))


@pytest.mark.slow
def test_crashes_and_late_workers_complete_every_job_exactly_once(
    server: Server, tmp_path: Path
) -> None:
    opener = partial(open_jobs, server, policy=POLICY)

    outcome = hammer(opener, seconds=5, folder=tmp_path, seed=1)

    assert outcome.defects == []


def test_recovery_passes_over_a_job_whose_heartbeat_is_under_way(
    postgres_url: str, server: Server, open_store: Callable[..., QueueJobStore]
) -> None:
    store = open_store(lock_duration=SHORT)
    lease, job_id = leased_job(store)
    time.sleep(0.2)  # the lease has ended, and its holder is about to extend it

    with uncommitted(postgres_url, server) as run:
        run("UPDATE {jobs} SET lock_until = lock_until + 300000 WHERE id = %s", job_id)
        during = store.recover_stale()
    after = store.recover_stale()

    job = stored(store, job_id)
    assert (during.jobs, after.jobs) == ((), ())
    assert (job.status, job.lock_owner, job.recoveries) == (JobStatus.PROCESSING, lease.owner, 0)
    assert store.complete(lease, [job_id]).done == (job_id,)


def test_heartbeat_racing_an_uncommitted_recovery_reports_the_lost_lease(
    postgres_url: str, server: Server, open_store: Callable[..., QueueJobStore]
) -> None:
    store = open_store()
    lease, job_id = leased_job(store)

    with ThreadPoolExecutor() as threads:
        with uncommitted(postgres_url, server) as run:
            run(
                "UPDATE {jobs} SET status = 'pending', lock_owner = NULL, lock_until = NULL,"
                " lease_token = NULL WHERE id = %s",
                job_id,
            )
            heartbeat = still_waiting(threads, lambda: store.heartbeat(lease, [job_id]))
        settled = heartbeat.result(30)

    assert settled.lost == (job_id,)
    assert stored(store, job_id).status is JobStatus.PENDING


def test_lease_takes_the_next_job_while_another_takes_the_first(
    postgres_url: str, server: Server, open_store: Callable[..., QueueJobStore]
) -> None:
    """Even where the first is of a tier of its own: it would decide for nothing."""
    store = open_store()
    add_jobs(store, 3)
    first, *others = store.history.walk()

    with uncommitted(postgres_url, server) as run:
        run("UPDATE {jobs} SET strikes = 9 WHERE id = %s", first.id)
        run("UPDATE {jobs} SET lock_owner = 'other' WHERE id = %s", first.id)
        lease = take(store)

    assert set(lease.job_ids) == {job.id for job in others}


def test_completion_sees_the_health_that_it_waited_for(
    postgres_url: str, server: Server, open_store: Callable[..., QueueJobStore]
) -> None:
    store = open_store()
    first, done = leased_job(store, uid="e0")
    store.complete(first, [done])
    lease, job_id = leased_job(store)
    trouble = json.dumps(HEALTH.encode(HealthRecord(consecutive_failures=3)))

    with ThreadPoolExecutor() as threads:
        with uncommitted(postgres_url, server) as run:
            run("UPDATE {states} SET value = %s WHERE name = 'health'", trouble)
            completion = still_waiting(threads, lambda: store.complete(lease, [job_id]))
        completion.result(30)

    (event,) = store.events.recent(kind="health.recovered")
    assert event.facts["consecutive_failures"] == 3
    assert store.health.report().consecutive_failures == 0


def test_completion_and_late_completion_at_once_succeed_once(
    open_store: Callable[..., QueueJobStore],
) -> None:
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


def test_deadlock_is_repeated_until_both_are_done(
    server: Server, open_store: Callable[..., QueueJobStore]
) -> None:
    store = open_store()
    add_jobs(store, 2)
    first, second = (job.id for job in store.history.walk())
    both_hold_one = threading.Barrier(2)
    runs: list[str] = []

    def touch(order: tuple[str, str], connection: Connection) -> None:
        runs.append(order[0])
        for job_id in order:
            text = sql.SQL("UPDATE {} SET strikes = strikes + 1 WHERE id = {} RETURNING id").format(
                sql.Identifier(server.schema, "embed_job"), job_id
            )
            connection.execute(text).fetchone()  # unfetched, it would not be sent yet
            if len(runs) <= 2 and job_id == order[0]:
                both_hold_one.wait(10)

    with closing(PostgresDatabase(server)) as database, ThreadPoolExecutor() as threads:
        orders = ((first, second), (second, first))
        futures = [threads.submit(database.write, partial(touch, order)) for order in orders]
        for future in futures:
            future.result(30)

    # The repeated one may take its first row before the other wakes up: then they meet once more.
    assert len(runs) >= 3, "the server ended one of them, which ran again"
    assert [job.strikes for job in store.history.walk()] == [2, 2]


def test_child_of_a_fork_opens_a_connection_of_its_own(server: Server) -> None:
    store = open_jobs(server)
    add_jobs(store, 2)

    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if len(take(store, 1, owner="child").jobs) == 1 else 1
            store.close()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)

    assert status == 0
    assert len(take(store, 2, owner="parent").jobs) == 1, "the parent's connection still works"
    store.close()


def test_threads_that_work_one_after_the_other_share_a_connection(
    postgres_url: str, server: Server
) -> None:
    """Those of tests before it may still be ending on the server."""
    find = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'embed-pipeline' AND backend_start >= %s"
    )
    with psycopg.connect(postgres_url) as connection, closing(open_jobs(server)) as store:
        begun = connection.execute("SELECT clock_timestamp()").fetchone()
        for _ in range(20):
            thread = threading.Thread(target=store.next_due, kwargs={"model": MODEL})
            thread.start()
            thread.join()

        assert connection.execute(find, begun).fetchone() == (1,)
