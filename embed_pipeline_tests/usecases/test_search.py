"""Search with the same model and budget; cleanup past retention."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from embed_pipeline.domain.window import RemainingQuota, Spent
from embed_pipeline.errors import RateLimited, RequestError, StoreUnavailable
from embed_pipeline.telemetry.latency import LatencyKind
from embed_pipeline.usecases.insight.search import search
from embed_pipeline.worker.admission import PAUSE_WITHOUT_ADVICE
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline_tests.clocks import MINUTE, SECOND
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import World, entity, uid


def test_nearest_entity_is_found_with_the_coverage_of_the_answer(world: World) -> None:
    world.fill(5)
    world.run()
    world.graph.create_entities([entity(5)], model=world.provider.model)

    result = search(world.services, "entity 3\nnote 3", limit=2)

    assert result.hits[0].entity.uid == uid(3)
    assert result.hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert (len(result.hits), result.searchable, result.entities) == (2, 5, 6)


def test_times_of_searches_are_saved_together_and_at_the_end(build: Build) -> None:
    world = build()
    saved = world.jobs.counters.latencies

    def searches() -> int:
        found = saved(model=world.services.model)
        return sum(sum(each.counts) for each in found if each.kind is LatencyKind.SEARCH)

    for _ in range(3):
        search(world.services, "one")
    assert searches() == 0
    world.services.unsaved_times.save(world.jobs)

    assert searches() == 3


def test_search_is_answered_though_its_time_cannot_be_saved(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_down(amounts: object) -> None:
        raise StoreUnavailable("the queue is away")

    monkeypatch.setattr(world.jobs.counters, "add", is_down)

    search(world.services, "one")
    world.services.unsaved_times.save(world.jobs)


@pytest.mark.parametrize("query", ["", "  \n"])
def test_search_without_words_is_refused_and_costs_nothing(world: World, query: str) -> None:
    with pytest.raises(RequestError, match="must not be empty"):
        search(world.services, query)

    assert world.provider.requests == []


def test_search_takes_from_the_same_budget(build: Build) -> None:
    world = build(requests=2)
    world.fill(1)
    world.run()
    search(world.services, "one")

    with pytest.raises(RateLimited, match="used up until"):
        search(world.services, "two")

    assert len(world.provider.requests) == 2


def test_search_whose_grant_came_too_late_sends_nothing_and_gives_it_back(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(requests=2)
    world.fill(1)
    take = world.limiter.take

    def slow_take(cost: Spent) -> object:
        grant = take(cost)
        world.clock.advance(2 * SECOND)
        return grant

    monkeypatch.setattr(world.limiter, "take", slow_take)

    with pytest.raises(RateLimited, match="took too long"):
        search(world.services, "one")

    assert world.provider.requests == []
    assert world.limiter.allowance().requests == 2


@pytest.mark.parametrize(("asked", "kept"), [(MINUTE, MINUTE), (None, PAUSE_WITHOUT_ADVICE)])
def test_search_that_has_to_wait_pauses_all_workers(
    build: Build, asked: timedelta | None, kept: timedelta
) -> None:
    world, other = (build(requests=10) for _ in range(2))
    world.fill(1)
    world.provider.script.append(RateLimited("429", retry_after=asked))

    with pytest.raises(RateLimited, match="429"):
        search(world.services, "one")

    refusal = lease_batch(other.services, owner="worker-b").refusal
    assert refusal is not None
    assert refusal.until == world.clock.now() + kept


def test_tokens_that_a_search_did_not_need_are_given_back(build: Build) -> None:
    world, other = (build(requests=10, tokens=1_000) for _ in range(2))
    world.provider.always = lambda texts: replace(world.provider.answer(texts), tokens=3)

    search(world.services, "a query of many more tokens than three")

    left = other.limiter.allowance()
    assert (left.requests, left.tokens) == (9, 997)


def test_what_the_provider_says_is_left_after_a_search_holds_for_all_workers(build: Build) -> None:
    world, other = (build(requests=10) for _ in range(2))
    said = RemainingQuota(requests=4)
    world.provider.always = lambda texts: replace(world.provider.answer(texts), remaining=said)

    search(world.services, "one")

    assert other.limiter.allowance().requests == 4


def test_provider_is_ready_before_a_search_takes_its_grant(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(requests=10)
    left: list[int | None] = []
    monkeypatch.setattr(
        world.provider, "get_ready", lambda: left.append(world.limiter.allowance().requests)
    )

    search(world.services, "one")

    assert left == [10]
