"""discover_sensor: queues marked entities at once, and keeps the queue filled."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import dagster as dg
import pytest

from embed_pipeline.defs.maintenance import discovery
from embed_pipeline.defs.polling import SensorCheckFailed
from embed_pipeline.errors import StoreUnavailable
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.usecases.entities.discover import Bounds
from embed_pipeline_tests.clocks import MINUTE, FakeClock
from embed_pipeline_tests.contracts.job_store.scene import PERMANENT, request
from embed_pipeline_tests.defs.conftest import Build
from embed_pipeline_tests.defs.scene import MODEL, Pipeline

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

SENSOR = "discover_sensor"


class SensorClock(FakeClock, SystemClock):
    pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SensorClock:
    clock = SensorClock(SystemClock().now())
    monkeypatch.setattr(discovery, "SystemClock", lambda: clock)
    return clock


class Ticks:
    """Ticks of the sensor, each with the cursor that the one before left."""

    def __init__(self, pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
        self._pipeline, self._instance = pipeline, instance
        self._cursor: str | None = None
        self.config: dict[str, object] = {}

    def next(self) -> str | None:
        """Why no run is launched; None where one is."""
        with self._pipeline.tick(SENSOR, self._instance, self._cursor) as result:
            self._cursor = result.cursor
            for request in result.run_requests or []:
                (op,) = request.run_config["ops"].values()
                self.config = op["config"]
                return None
            return str(result.skip_message)


@pytest.fixture
def ticks(pipeline: Pipeline, instance: dg.DagsterInstance) -> Ticks:
    return Ticks(pipeline, instance)


def names(count: int, prefix: str = "thing") -> list[str]:
    return [f"{prefix} {number}" for number in range(count)]


def test_nothing_is_done_while_nothing_is_missing(pipeline: Pipeline, ticks: Ticks) -> None:
    empty = ticks.next()
    pipeline.create("a")
    queued = ticks.next()
    pipeline.run("embed_job")

    assert [empty, queued, ticks.next()] == [
        "no entity lacks a vector",
        "all 1 entities without a vector have a job",
        "no entity lacks a vector",
    ]


def test_a_few_are_queued_by_the_tick_itself(pipeline: Pipeline, ticks: Ticks) -> None:
    pipeline.create_outside("a", "b")

    said = ticks.next()

    assert (said, pipeline.pending) == ("queued 2 entities; complete", 2)
    assert ticks.next() == "all 2 entities without a vector have a job"


def test_a_change_like_the_last_one_is_queued_at_once(pipeline: Pipeline, ticks: Ticks) -> None:
    said = []
    for name in ("a", "b"):
        pipeline.create_outside(name)
        said.append(ticks.next())
        pipeline.run("embed_job")

    assert said == ["queued 1 entities; complete"] * 2


def test_marked_entities_are_queued_although_the_queue_is_full(
    build: Build, instance: dg.DagsterInstance
) -> None:
    pipeline = build(EMBED_QUEUE_DEPTH="100")
    pipeline.create(*names(150))
    pipeline.create_outside("marked")

    said = Ticks(pipeline, instance).next()

    assert (said, pipeline.pending) == ("queued 1 entities; complete", 151)


def test_many_are_queued_by_a_run_that_fills_the_queue(
    build: Build, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "FEW", 10)
    pipeline = build(EMBED_QUEUE_DEPTH="100")
    write_unmarked(pipeline, 150)
    ticks = Ticks(pipeline, instance)

    first = ticks.next()
    pipeline.run("discover_job", {"discover_missing_embeddings": ticks.config})
    filled, pending = ticks.next(), pipeline.pending
    pipeline.services.jobs.cancel(limit=60)
    below_half = ticks.next()

    assert (first, pending) == (None, 100)
    assert filled == "the queue is filled: at least 100 jobs are pending"
    assert (below_half, ticks.config["most_jobs"]) == (None, 60)


def test_parked_jobs_do_not_stop_it(pipeline: Pipeline, ticks: Ticks) -> None:
    pipeline.create("refused")
    lease = pipeline.services.jobs.lease(owner="w", model=MODEL, limit=1, token="t")
    pipeline.services.jobs.fail(lease, dict.fromkeys(lease.job_ids, PERMANENT))
    parked = ticks.next()
    pipeline.create_outside("new")

    assert parked == "all 1 entities without a vector have a job"
    assert ticks.next() == "queued 1 entities; complete"


def test_parked_jobs_are_passed_tick_by_tick(
    pipeline: Pipeline, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "IN_A_TICK", Bounds(most_jobs=5, most_read=5, audit=False))
    write_unmarked(pipeline, 8)
    pipeline.run("discover_job")
    lease = pipeline.services.jobs.lease(owner="w", model=MODEL, limit=8, token="t")
    pipeline.services.jobs.fail(lease, dict.fromkeys(lease.job_ids, PERMANENT))
    write_unmarked(pipeline, 1, prefix="z behind all of them")

    said = [str(ticks.next()) for _ in range(2)]

    assert pipeline.pending == 1, said


@pytest.mark.parametrize("stop", ["pause", "halt"])
def test_stopped_queue_is_not_filled(pipeline: Pipeline, ticks: Ticks, stop: str) -> None:
    pipeline.create_outside("a")
    switch = pipeline.services.jobs.switch
    switch.pause("maintenance") if stop == "pause" else switch.halt("maintenance", seen=0)

    stopped = ticks.next()
    switch.resume("done")

    assert stopped == f"the queue is {'paused' if stop == 'pause' else 'halted'}: maintenance"
    assert ticks.next() == "queued 1 entities; complete"


def test_sweep_in_vain_is_repeated_after_a_quarter_of_an_hour_or_when_more_is_missing(
    pipeline: Pipeline, ticks: Ticks, clock: SensorClock
) -> None:
    write_unmarked(pipeline, 1)
    pipeline.services.jobs.named_leases.take("discovery", owner="run-1", duration=60 * MINUTE)

    first, second = ticks.next(), ticks.next()
    write_unmarked(pipeline, 1, prefix="another")
    third, fourth = ticks.next(), ticks.next()
    clock.advance(15 * MINUTE)
    fifth = ticks.next()

    busy, vain = "another discovery is at work: run-1", "the last sweep could queue none"
    assert [busy in said for said in map(str, (first, third, fifth))] == [True] * 3
    assert [said.startswith(vain) for said in map(str, (second, fourth))] == [True] * 2


def test_one_run_at_a_time(pipeline: Pipeline, instance: dg.DagsterInstance, ticks: Ticks) -> None:
    pipeline.create_outside("a")
    pipeline.add_run(instance, dg.DagsterRunStatus.QUEUED, job="discover_job")

    assert ticks.next() == "the previous run of discover_job is still queued or running"


def test_jobs_of_entities_with_a_vector_hide_a_gap_only_while_they_live(
    pipeline: Pipeline, ticks: Ticks
) -> None:
    pipeline.create("a")
    pipeline.run("embed_job")
    pipeline.services.jobs.enqueue([request("x")])
    write_unmarked(pipeline, 1)
    hidden = ticks.next()
    pipeline.run("embed_job")

    assert hidden == "all 1 entities without a vector have a job"
    assert ticks.next() == "queued 1 entities; complete"


def test_graph_that_cannot_be_read_fails_the_tick_with_one_sentence(
    ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_self: GraphEntityStore, **_asked: object) -> object:
        raise StoreUnavailable("The graph cannot be reached.")

    monkeypatch.setattr(GraphEntityStore, "counts", down)

    with pytest.raises(SensorCheckFailed, match=r"^The graph cannot be reached\.$"):
        ticks.next()


def write_unmarked(pipeline: Pipeline, count: int, *, prefix: str = "theirs") -> None:
    """As another program does, which knows nothing of markers."""
    pipeline.services.graph.models()  # makes the file
    with closing(sqlite3.connect(pipeline.settings.home / "graph.sqlite")) as file, file:
        for name in names(count, prefix):
            file.execute("INSERT INTO Entity (uid, name) VALUES (?, ?)", (name, name))
        file.execute("UPDATE Entity SET needs_embedding = 0")
