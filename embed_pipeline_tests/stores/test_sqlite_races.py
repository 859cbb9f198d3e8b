"""Races on one SQLite queue, with real threads and real processes."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embed_pipeline.domain.window import Grant, Spent
from embed_pipeline_tests.clocks import FakeClock
from embed_pipeline_tests.stores import queue_races
from embed_pipeline_tests.stores.queue_races import LIMIT
from embed_pipeline_tests.stores.sqlite_queue import SqliteQueueBackend, open_jobs


@pytest.mark.slow
def test_eight_threads_in_two_processes_lease_100_000_jobs_once_each(tmp_path: Path) -> None:
    opener = partial(open_jobs, tmp_path / "queue.sqlite")

    queue_races.lease_everything_once(opener, count=100_000, batch=250)


def test_four_processes_never_overdraw_any_window(tmp_path: Path) -> None:
    opener = partial(open_jobs, tmp_path / "queue.sqlite")

    queue_races.take_grants_in_four_processes(opener, takes=400)


def test_overlapping_enqueues_in_any_order_create_each_job_once(tmp_path: Path) -> None:
    queue_races.enqueue_the_same_in_any_order(partial(open_jobs, tmp_path / "queue.sqlite"))


# A taker, how long it waited before, and whether it gives its grant back at once.
TAKES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 700), st.booleans()), min_size=1, max_size=60
)


@settings(max_examples=60)
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
