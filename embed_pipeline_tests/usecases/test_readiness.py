"""The look before a run: whether it is worth its seconds, and if not, why and until when."""

from __future__ import annotations

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.job import FailureRecord
from embed_pipeline.errors import ErrorCategory
from embed_pipeline.usecases.queue.readiness import Readiness, check_readiness
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import MODEL, World

NO_ANSWER = FailureRecord(
    category=ErrorCategory.TRANSIENT, error_type="Timeout", message="no answer in time"
)


def readiness(world: World) -> Readiness:
    return check_readiness(world.jobs, world.limiter, model=MODEL)


def test_due_job_is_worth_a_run(world: World) -> None:
    world.fill(1)
    since = world.clock.now()
    world.clock.advance(MINUTE)

    assert readiness(world) == Readiness(due_since=since)


def test_empty_queue_has_nothing_pending(world: World) -> None:
    assert readiness(world).reason == "nothing is pending"


def test_jobs_that_are_held_or_ended_are_not_pending(world: World) -> None:
    world.fill(2)
    lease = world.lease()
    world.jobs.complete(lease, lease.job_ids[:1])

    assert readiness(world).reason == "nothing is pending"


def test_jobs_of_another_model_are_not_ours(world: World) -> None:
    world.fill(1)

    other = check_readiness(world.jobs, world.limiter, model="mock/other@8")

    assert other.reason == "nothing is pending"


def test_deferred_job_is_named_with_its_time(world: World) -> None:
    world.fill(1)
    lease = world.lease()
    world.jobs.defer(lease, lease.job_ids, error=NO_ANSWER, delay=90 * SECOND)

    before = readiness(world)
    world.clock.advance(90 * SECOND)

    assert before.reason == "nothing is due before 12:01:30 UTC"
    assert readiness(world).reason is None


def test_pause_and_halt_say_why_and_what_to_do(world: World) -> None:
    world.fill(1)

    world.jobs.switch.pause("maintenance")
    paused = readiness(world)
    world.jobs.switch.halt("the key was revoked", seen=0)
    halted = readiness(world)

    assert paused.reason == "paused: maintenance; resume it to go on"
    assert halted.reason == "halted: the key was revoked; resume it to go on"


def test_open_breaker_says_when_the_next_try_is(world: World) -> None:
    world.fill(1)

    for name in ("mock", GRAPH):
        world.jobs.breakers.trip(name, seen=0, error=NO_ANSWER)
        reason = readiness(world).reason
        assert reason == f"{name} does not answer (no answer in time); next try at 12:00:01 UTC"


def test_run_is_worth_it_again_when_the_breakers_pause_is_over(world: World) -> None:
    world.fill(1)
    world.jobs.breakers.trip("mock", seen=0, error=NO_ANSWER)

    world.clock.advance(SECOND)

    assert readiness(world).reason is None


def test_spent_budget_says_when_it_is_back(build: Build) -> None:
    world = build(requests=2)
    world.fill(1)
    world.spend(2)

    spent = readiness(world)
    world.clock.advance(HOUR)

    assert spent.reason is not None
    assert spent.reason.startswith("the budget is used up; back at 12:01:")
    assert readiness(world).reason is None
