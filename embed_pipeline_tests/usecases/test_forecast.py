"""What is left, how fast it goes and when it is done: never done while something is missing."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.usecases.insight.forecast import Forecast, read_forecast
from embed_pipeline_tests.clocks import MINUTE, SECOND, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import MODEL, World, entity


def forecast(world: World) -> Forecast:
    return read_forecast(world.services, world.jobs.get_queue_status())


def test_done_only_when_nothing_is_pending_processing_or_missing(world: World) -> None:
    world.fill(2)
    pending = forecast(world)
    lease = world.jobs.lease(owner="w", model=MODEL, limit=2, token="t")
    processing = forecast(world)
    world.jobs.release(lease, lease.job_ids)
    world.run()
    done = forecast(world)
    world.graph.create_entities([entity(7)], model=MODEL)
    missing = forecast(world)

    assert [each.left for each in (pending, processing, done, missing)] == [2, 2, 0, 1]
    assert [each.is_done for each in (pending, done, missing)] == [False, True, False]
    assert done.eta == timedelta(0)


def test_time_follows_the_rate_of_the_last_minutes(world: World, clock: FakeClock) -> None:
    unknown = forecast(world)
    world.fill(20)
    world.run()
    clock.advance(10 * SECOND)
    world.fill(5, first=100)

    now = forecast(world)
    clock.advance(10 * MINUTE)

    assert unknown.per_second is None
    assert (now.per_second, now.eta) == (2.0, timedelta(seconds=2.5))
    assert forecast(world).per_second is None, "a rate of long ago says nothing"
    assert forecast(world).eta is None


def test_budget_of_tokens_rules_the_time(build: Build, clock: FakeClock) -> None:
    world = build(requests=1_000, tokens=600, interval=MINUTE)
    world.fill(10)
    world.run()
    tokens = world.jobs.counters.read()["provider_tokens"] / 10
    clock.advance(SECOND)
    world.fill(30, first=100)

    eta = forecast(world).eta

    assert eta is not None
    assert abs(eta.total_seconds() - 30 * tokens / 10) < 0.01
