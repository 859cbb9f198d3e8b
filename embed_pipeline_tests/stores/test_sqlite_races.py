"""Races on one SQLite queue, with real threads and real processes."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embed_pipeline.domain.window import Grant, RateLimit, Spent
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline.stores.sqlite.queue.backend import QueueFile
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.contracts.job_store.scene import MODEL, add_jobs
from embed_pipeline_tests.stores.sqlite_queue import SqliteQueueBackend

PROCESSES = multiprocessing.get_context("spawn")
LIMIT = RateLimit(requests=5, interval=timedelta(milliseconds=600))


def _lease_all(path: Path, process: int, answers: multiprocessing.Queue[list[str]]) -> None:
    store = QueueJobStore(QueueFile(path))
    taken: list[str] = []

    def drain(thread: int) -> None:
        owner, call = f"{process}-{thread}", 0
        while jobs := store.lease(
            owner=owner, model=MODEL, limit=250, token=f"{owner}-{call}"
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


def lease_everything_once(path: Path, *, count: int) -> None:
    store = QueueJobStore(QueueFile(path))
    add_jobs(store, count)
    answers: multiprocessing.Queue[list[str]] = PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=_lease_all, args=(path, number, answers)) for number in range(2)
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


@pytest.mark.slow
def test_eight_threads_in_two_processes_lease_100_000_jobs_once_each(tmp_path: Path) -> None:
    lease_everything_once(tmp_path / "queue.sqlite", count=100_000)


def _take_grants(path: Path, answers: multiprocessing.Queue[list[Grant]]) -> None:
    limiter = SharedRateLimiter(QueueFile(path), provider="openai", limit=LIMIT)
    takes = [limiter.take(Spent(requests=1)) for _ in range(400)]
    answers.put([grant for grant in takes if isinstance(grant, Grant)])


def _most_in_any_window(grants: list[Grant]) -> int:
    """By the grants' buckets: the finest time that is stored."""
    starts = sorted(grant.bucket for grant in grants)
    return max(
        (sum(start <= other <= start + LIMIT.interval for other in starts) for start in starts),
        default=0,
    )


def test_four_processes_never_overdraw_any_window(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite"
    answers: multiprocessing.Queue[list[Grant]] = PROCESSES.Queue()
    processes = [PROCESSES.Process(target=_take_grants, args=(path, answers)) for _ in range(4)]
    for process in processes:
        process.start()

    grants = [grant for _ in processes for grant in answers.get(timeout=60)]
    for process in processes:
        process.join()

    assert len(grants) >= LIMIT.requests
    assert _most_in_any_window(grants) <= LIMIT.requests


# A taker, how long it waited before, and whether it gives its grant back at once.
TAKES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 700), st.booleans()), min_size=1, max_size=60
)


@settings(max_examples=60, deadline=None)
@given(takes=TAKES)
def test_no_interleaving_of_four_takers_admits_more_than_the_limit(
    takes: list[tuple[int, int, bool]],
) -> None:
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder:
        backend = SqliteQueueBackend(Path(folder) / "queue.sqlite", clock)
        limiters = [backend.open_limiter(provider="openai", limit=LIMIT) for _ in range(4)]
        moments = []
        for taker, wait_ms, gives_back in takes:
            clock.advance(timedelta(milliseconds=wait_ms))
            grant = limiters[taker].take(Spent(requests=1))
            if isinstance(grant, Grant) and gives_back:
                limiters[taker].give_back(grant)
            elif isinstance(grant, Grant):
                moments.append(clock.now())
        backend.close()

    for end in moments:
        in_window = [moment for moment in moments if end - LIMIT.interval <= moment <= end]
        assert len(in_window) <= LIMIT.requests
