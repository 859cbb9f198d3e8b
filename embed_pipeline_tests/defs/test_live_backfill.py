"""A graph that another program filled is embedded by the sensors alone, without an idle second."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from embed_pipeline.usecases.entities.discover import WITHOUT_BOUND, discover
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.stop import Deadline
from embed_pipeline_tests.clocks import MINUTE
from embed_pipeline_tests.defs.conftest import Print
from embed_pipeline_tests.defs.live import Live, live_system

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

LATENCY = timedelta(milliseconds=300)


def write_as_another_program(live: Live, count: int) -> None:
    """Entities that no marker names."""
    live.services.graph.models()  # makes the file
    path = live.homes.embed / "graph.sqlite"
    with closing(sqlite3.connect(path, timeout=60)) as file, file:
        file.executemany(
            "INSERT INTO Entity (uid, name, needs_embedding) VALUES (?, ?, 0)",
            [(f"theirs {n:07}", f"thing {n}") for n in range(count)],
        )


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


def backfill(live: Live, count: int, *, within: float) -> Samples:
    write_as_another_program(live, count)
    samples = Samples(live)
    with live.dagster():
        samples.start()
        try:
            live.wait_until_all_is_embedded(within)
        finally:
            samples.end()
    assert live.services.graph.counts(model=live.services.model).embedded == count
    return samples


@pytest.mark.slow
def test_foreign_graph_is_embedded_by_the_sensors_without_an_idle_second(
    tmp_path: Path, print_line: Print
) -> None:
    with live_system(tmp_path) as live:
        live.slow_provider(LATENCY.total_seconds())
        begun = time.monotonic()

        samples = backfill(live, 2_000, within=240)

        print_line(f"2 000 entities of a foreign graph in {time.monotonic() - begun:.0f} s")
        assert samples.idle == []
        assert len(live.runs("discover_job")) >= 1


@pytest.mark.scale
def test_hundred_thousand_entities_at_nearly_the_rate_of_one_run(
    tmp_path: Path, print_line: Print
) -> None:
    count = 100_000
    for name in ("alone", "sensors"):
        (tmp_path / name).mkdir()
    with live_system(tmp_path / "alone") as alone:
        alone.slow_provider(LATENCY.total_seconds())
        write_as_another_program(alone, count)
        discover(alone.services, bounds=WITHOUT_BOUND)
        begun = time.monotonic()
        report = run_until_empty(
            alone.services,
            owner="cli",
            recovery_interval=MINUTE,
            deadline=Deadline(alone.services.clock, limit=None),
        )
        one_run = report.embedded / (time.monotonic() - begun)
    with live_system(tmp_path / "sensors") as live:
        live.slow_provider(LATENCY.total_seconds())
        samples = backfill(live, count, within=1_800)
    assert samples.first_vector is not None
    assert samples.last_vector is not None
    by_sensors = count / (samples.last_vector - samples.first_vector)
    print_line(f"one run {one_run:,.0f}/s, by sensors {by_sensors:,.0f}/s")
    assert samples.idle == []
    assert by_sensors >= 0.8 * one_run
