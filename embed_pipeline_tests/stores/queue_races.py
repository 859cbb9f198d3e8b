"""Races on one queue, with real threads and real processes; bound to a backend by its opener."""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from embed_pipeline.domain.job import Enqueued
from embed_pipeline.domain.window import Grant, RateLimit, Spent
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline_tests.contracts.job_store.scene import MODEL, add_jobs, request

PROCESSES = multiprocessing.get_context("spawn")
LIMIT = RateLimit(requests=5, interval=timedelta(milliseconds=600))

OpenStore = Callable[[], QueueJobStore]
"""Picklable, so that other processes open the same queue."""


def lease_everything_once(open_store: OpenStore, *, count: int, batch: int) -> None:
    """Eight threads in each of two processes drain the queue."""
    store = open_store()
    add_jobs(store, count)
    answers: multiprocessing.Queue[list[str]] = PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_lease_all, args=(open_store, number, batch, answers))
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
    store.close()


def _lease_all(
    open_store: OpenStore, process: int, batch: int, answers: multiprocessing.Queue[list[str]]
) -> None:
    store = open_store()
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


def take_grants_in_four_processes(open_store: OpenStore, *, takes: int) -> None:
    """No window ever holds more than the limit."""
    answers: multiprocessing.Queue[list[Grant]] = PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_take_grants, args=(open_store, takes, answers)) for _ in range(4)
    ]
    for process in processes:
        process.start()

    grants = [grant for _ in processes for grant in answers.get(timeout=120)]
    for process in processes:
        process.join()

    assert len(grants) >= LIMIT.requests
    assert _most_in_any_window(grants) <= LIMIT.requests


def _take_grants(
    open_store: OpenStore, takes: int, answers: multiprocessing.Queue[list[Grant]]
) -> None:
    store = open_store()
    limiter = SharedRateLimiter(store.database, provider="openai", limit=LIMIT)
    found = [limiter.take(Spent(requests=1)) for _ in range(takes)]
    limiter.close()
    answers.put([grant for grant in found if isinstance(grant, Grant)])


def _most_in_any_window(grants: list[Grant]) -> int:
    """By the grants' buckets: the finest time that is stored."""
    starts = sorted(grant.bucket for grant in grants)
    return max(
        (sum(start <= other <= start + LIMIT.interval for other in starts) for start in starts),
        default=0,
    )


def enqueue_the_same_in_any_order(open_store: OpenStore) -> None:
    """Overlapping enqueues create each job once, and report it truthfully."""
    requests = [request(f"e{n}", force=n % 5 == 0) for n in range(300)]
    stores = [open_store() for _ in range(4)]
    start = threading.Barrier(len(stores))

    def enqueue(store: QueueJobStore) -> tuple[Enqueued, ...]:
        mine = random.sample(requests, len(requests))
        start.wait()
        return store.enqueue(mine).outcomes

    with ThreadPoolExecutor() as threads:
        outcomes = [outcome for found in threads.map(enqueue, stores) for outcome in found]

    assert Counter(outcomes) == {Enqueued.CREATED: 300, Enqueued.QUEUED: 900}
    assert stores[0].get_queue_status().total == 300
    assert stores[0].counters.read()["jobs_enqueued"] == 300
    for store in stores:
        store.close()
