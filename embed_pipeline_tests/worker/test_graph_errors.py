"""A graph that is out of order: a pause, a halt, or one entity that is too much for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embed_pipeline.domain.breaker import LASTING
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.job import EmbedJob, JobStatus
from embed_pipeline.errors import ErrorCategory, StoreFaltered, StoreOverloaded, StoreUnavailable
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline_tests.clocks import HOUR, MINUTE, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.parts import WorkerClock
from embed_pipeline_tests.worker.scene import World, uid

FALTERED = StoreFaltered("The graph broke while answering.")
DOWN = StoreUnavailable("The graph cannot be reached.")
OVERLOADED = StoreOverloaded("The graph has no memory left for a transaction.")


def work(world: World) -> None:
    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )


def is_halted(world: World) -> bool:
    return world.jobs.switch.read().state is SwitchState.HALTED


def breakers_opened(world: World) -> int:
    return len(world.jobs.events.recent(kind="breaker.opened"))


def uncharged(jobs: list[EmbedJob]) -> bool:
    return all(job.attempts == 0 and job.status is not JobStatus.FAILED for job in jobs)


# -- it breaks while answering ------------------------------------------------------------------


def rounds(world: World, trouble: Exception | None, *, times: int) -> None:
    """Runs that each meet the graph once, as Dagster's do, and are processes of their own."""
    world.graph.trouble = trouble
    for _ in range(times):
        world.clock.advance(MINUTE)
        world.run()


def break_at_the_first_write(world: World) -> None:
    def falter() -> None:
        world.graph.trouble = FALTERED

    world.graph.on_write = falter


def break_at_once(world: World) -> None:
    world.graph.trouble = FALTERED


@pytest.mark.parametrize("how", [break_at_once, break_at_the_first_write])
def test_graph_that_breaks_at_every_answer_halts_the_queue(
    world: World, how: Callable[[World], None]
) -> None:
    world.fill(3)
    how(world)
    begun = world.clock.now()

    work(world)

    switch = world.jobs.switch.read()
    assert switch.state is SwitchState.HALTED
    assert switch.reason == "The graph broke while answering, again and again."
    assert LASTING < world.clock.now() - begun < 3 * MINUTE
    assert uncharged(world.all_jobs)


def test_runs_that_each_meet_a_broken_graph_once_halt_the_queue_together(world: World) -> None:
    world.fill(3)

    rounds(world, FALTERED, times=6)
    halted_before = is_halted(world)
    rounds(world, FALTERED, times=1)

    assert (halted_before, is_halted(world)) == (False, True)
    assert uncharged(world.all_jobs)


def test_good_answer_in_between_begins_again(world: World) -> None:
    world.fill(2)

    rounds(world, FALTERED, times=6)
    rounds(world, None, times=1)
    world.fill(2, first=2)
    rounds(world, FALTERED, times=6)

    assert not is_halted(world)
    assert world.count(JobStatus.COMPLETED) == 2
    assert uncharged(world.all_jobs)


def test_restart_after_a_long_outage_may_falter_without_a_halt(world: World) -> None:
    world.fill(2)

    rounds(world, DOWN, times=10)
    rounds(world, FALTERED, times=1)
    rounds(world, DOWN, times=1)
    rounds(world, FALTERED, times=1)
    rounds(world, None, times=1)

    assert not is_halted(world)
    assert world.count(JobStatus.COMPLETED) == 2


# -- it has no memory for one entity ------------------------------------------------------------


@pytest.mark.parametrize("batch_limit", [0, 1, 20])
def test_entity_too_large_to_be_written_fails_by_itself_with_the_reason(
    world: World, batch_limit: int
) -> None:
    world.fill(1 + batch_limit)
    world.graph.too_large_to_write = {uid(0)}

    work(world)

    assert_only_the_large_one_failed(world, batch_limit)
    others = [text for text in world.provider.texts if text != world.text_of(uid(0))]
    assert len(others) == batch_limit, "no text is paid for twice because of it"


@pytest.mark.parametrize("batch_limit", [0, 1, 40])
def test_entity_too_large_to_be_read_fails_by_itself_with_the_reason(
    world: World, batch_limit: int
) -> None:
    world.fill(1 + batch_limit)
    world.graph.too_large_to_read = {uid(0)}

    work(world)

    assert_only_the_large_one_failed(world, batch_limit)


def assert_only_the_large_one_failed(world: World, batch_limit: int) -> None:
    large = world.job_of(uid(0))
    assert (large.status, large.attempts) == (JobStatus.FAILED, large.max_attempts)
    assert large.error_category is ErrorCategory.TRANSIENT
    assert large.error is not None
    assert "no memory for this entity" in large.error
    others = [job for job in world.all_jobs if job.entity_uid != uid(0)]
    assert [job.status for job in others] == [JobStatus.COMPLETED] * batch_limit
    assert uncharged(others)
    assert breakers_opened(world) == 0, "the graph is well, so no worker waits"


@pytest.mark.parametrize("entities", [1, 5])
def test_graph_without_memory_for_any_write_is_waited_for_and_charges_no_job(
    build: Build, clock: FakeClock, entities: int
) -> None:
    own_clock = WorkerClock(clock)
    world = build(worker_clock=own_clock)
    world.fill(entities)

    def run_out_of_memory() -> None:
        world.graph.on_write, world.graph.trouble = None, OVERLOADED

    world.graph.on_write = run_out_of_memory
    own_clock.on_wait = lambda: world.graph.come_back() if len(own_clock.waits) == 8 else None

    work(world)

    assert world.count(JobStatus.COMPLETED) == entities
    assert {(job.attempts, job.strikes) for job in world.all_jobs} == {(0, 0)}
    assert breakers_opened(world) == 8
    assert len(world.provider.texts) == entities
