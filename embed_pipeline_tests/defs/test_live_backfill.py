"""A graph that another program filled is embedded by the sensors alone, without an idle second."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from embed_pipeline.domain.job import Live as LiveJobs
from embed_pipeline.usecases.entities.discover import WITHOUT_BOUND, discover
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.stop import Deadline
from embed_pipeline_tests.clocks import MINUTE
from embed_pipeline_tests.defs.conftest import Print
from embed_pipeline_tests.defs.dev_server import within
from embed_pipeline_tests.defs.live import Live, live_system

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

LATENCY = timedelta(milliseconds=300)
NOTHING = LiveJobs(pending=0, processing=0)


Opened = Callable[[Path, int], AbstractContextManager[Live]]
"""A system with so many entities of another program, which no marker names."""

COUNT = int(os.environ.get("EMBED_TEST_BACKFILL", "100000"))
"""Of the long form; fewer to try it out."""


@contextmanager
def on_sqlite(folder: Path, count: int) -> Iterator[Live]:
    folder.mkdir(exist_ok=True)
    with live_system(folder) as live:
        live.services.graph.models()  # makes the file
        path = live.homes.embed / "graph.sqlite"
        with closing(sqlite3.connect(path, timeout=60)) as file, file:
            file.executemany(
                "INSERT INTO Entity (uid, name, needs_embedding) VALUES (?, ?, 0)",
                [(f"theirs {n:07}", f"thing {n}") for n in range(count)],
            )
        yield live


class Samples(threading.Thread):
    """Every second from the first job on: what is live, and what is missing."""

    def __init__(self, live: Live) -> None:
        super().__init__(daemon=True)
        self._services, self._ended = live.services, threading.Event()
        self.idle: list[str] = []
        self.first_vector: float | None = None
        self.last_vector: float | None = None

    def run(self) -> None:
        jobs, graph, model = self._services.jobs, self._services.graph, self._services.model
        has_begun = False
        while not self._ended.wait(1):
            # The graph first: what is embedded meanwhile must not look like an idle queue.
            counts, live = graph.counts(model=model), jobs.count_live(model=model, limit=10)
            has_begun = has_begun or bool(live.pending or live.processing)
            if counts.embedded and self.first_vector is None:
                self.first_vector = time.monotonic()
            if counts.missing == 0 and counts.entities and self.last_vector is None:
                self.last_vector = time.monotonic()
            if has_begun and counts.missing and not (live.pending or live.processing):
                self.idle.append(f"{counts.missing} missing, and the queue was empty")

    def end(self) -> None:
        self._ended.set()
        self.join()


def backfill(live: Live, count: int, *, patience: float) -> Samples:
    live.slow_provider(LATENCY.total_seconds())
    jobs, graph, model = live.services.jobs, live.services.graph, live.services.model

    def is_complete() -> bool:
        waiting = jobs.count_live(model=model, limit=1)
        return graph.counts(model=model).embedded == count and waiting == NOTHING

    samples = Samples(live)
    with live.dagster():
        samples.start()
        try:
            within(patience, is_complete, live.explain)
        finally:
            samples.end()
    assert jobs.get_queue_status().failed == 0
    return samples


def rate_of_one_run(live: Live, count: int) -> float:
    live.slow_provider(LATENCY.total_seconds())
    discover(live.services, bounds=WITHOUT_BOUND)
    begun = time.monotonic()
    report = run_until_empty(
        live.services,
        owner="cli",
        recovery_interval=MINUTE,
        deadline=Deadline(live.services.clock, limit=None),
    )
    assert report.embedded == count
    return count / (time.monotonic() - begun)


def check_small_backfill(opened: Opened, folder: Path, count: int, print_line: Print) -> None:
    with opened(folder, count) as live:
        begun = time.monotonic()

        samples = backfill(live, count, patience=240)

        print_line(f"{count} entities of a foreign graph in {time.monotonic() - begun:.0f} s")
        assert samples.idle == []
        assert len(live.runs("discover_job")) >= 1


def check_rate(opened: Opened, folder: Path, print_line: Print) -> None:
    """From the first vector to the last, by the sensors and by one run, in one test."""
    with opened(folder / "alone", COUNT) as alone:
        one_run = rate_of_one_run(alone, COUNT)
    with opened(folder / "sensors", COUNT) as live:
        samples = backfill(live, COUNT, patience=1_800)
    assert samples.first_vector is not None
    assert samples.last_vector is not None
    by_sensors = COUNT / (samples.last_vector - samples.first_vector)
    print_line(f"{COUNT} entities: one run {one_run:,.0f}/s, by sensors {by_sensors:,.0f}/s")
    assert samples.idle == []
    assert by_sensors >= 0.8 * one_run


@pytest.mark.scale  # on Neo4j it is among the slow ones
def test_foreign_graph_is_embedded_by_the_sensors_without_an_idle_second(
    tmp_path: Path, print_line: Print
) -> None:
    check_small_backfill(on_sqlite, tmp_path, 2_000, print_line)


@pytest.mark.scale
def test_hundred_thousand_entities_at_nearly_the_rate_of_one_run(
    tmp_path: Path, print_line: Print
) -> None:
    check_rate(on_sqlite, tmp_path, print_line)
