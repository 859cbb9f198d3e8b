"""Tokens per interval: all of them are used, none is lost, and what the provider says is heeded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from embed_pipeline.domain.window import RateLimit, Spent
from embed_pipeline.stores.queue.rate_limiter import SharedRateLimiter
from embed_pipeline.usecases.queue.readiness import check_readiness
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import MINUTE, FakeClock
from embed_pipeline_tests.openai_budget import Budget
from embed_pipeline_tests.openai_server import OpenAIServer
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.openai_scene import OpenAIWorld, running_server, server
from embed_pipeline_tests.worker.scene import MODEL, World, entity, uid

__all__ = ["running_server", "server"]

WORDS = "word " * 40


def tokens_of(world: World, *uids: str) -> int:
    texts = [world.text_of(uid(name)) for name in uids]
    return sum(fitted.tokens for fitted in world.provider.fit(texts))


def test_request_is_cut_to_the_tokens_that_are_left(build: Build) -> None:
    world = build(requests=100, tokens=1_000)
    world.provider.always = lambda texts: replace(world.provider.answer(texts), tokens=0)
    world.create(*(entity(number, WORDS) for number in range(40)))
    world.limiter.take(Spent(requests=1, tokens=550))

    report = world.run()

    done = [uid(number) for number in range(40) if world.is_embedded(uid(number))]
    used = tokens_of(world, *done)
    assert 450 - tokens_of(world, uid(39)) <= used <= 450
    assert (report.stop_reason, report.requests) == (StopReason.BUDGET_SPENT, 1)
    assert report.released == 40 - len(done)


def test_tokens_above_the_estimate_are_taken_from_the_budget(build: Build) -> None:
    world = build(requests=100, tokens=1_000)
    world.provider.always = lambda texts: replace(world.provider.answer(texts), tokens=900)
    world.create(entity("one"))

    world.run()

    assert world.limiter.allowance().tokens == 100


def test_small_texts_use_what_is_left_behind_a_big_one(build: Build) -> None:
    world = build(requests=100, tokens=1_000)
    world.provider.always = lambda texts: replace(world.provider.answer(texts), tokens=0)
    world.create(entity("first", WORDS * 15), entity("big", WORDS * 18), entity("small", "note"))

    world.run()

    assert [world.is_embedded(uid(name)) for name in ("first", "big", "small")] == [
        True,
        False,
        True,
    ]


def test_tokens_too_few_for_any_text_tell_all_workers_when_they_are_back(build: Build) -> None:
    world, other = (build(requests=100, tokens=1_000) for _ in range(2))
    world.provider.always = lambda texts: replace(world.provider.answer(texts), tokens=0)
    world.create(entity("first", WORDS * 15), entity("big", WORDS * 18))

    report = world.run()

    left = 1_000 - tokens_of(world, "first")
    assert 0 < left < tokens_of(world, "big"), "some is left"
    assert report.back_at is not None
    reason = check_readiness(world.jobs, other.limiter, model=MODEL).reason
    assert reason == f"the budget is used up; back at {report.back_at:%H:%M:%S} UTC"
    refusal = lease_batch(other.services, owner="worker-b").refusal
    assert refusal is not None
    assert refusal.until == report.back_at


def test_everything_is_embedded_with_a_budget_for_a_few_texts_at_a_time(build: Build) -> None:
    world = build(requests=100, tokens=500)
    world.create(*(entity(number, WORDS) for number in range(40)), entity("huge", WORDS * 30))

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=None, deadline=world.deadline()
    )

    assert (report.embedded, report.stop_reason) == (41, StopReason.QUEUE_EMPTY)


# -- with the real client ----------------------------------------------------------------------


@pytest.fixture
def budget(server: OpenAIServer) -> Iterator[Budget]:
    usual, server.budget = server.budget, Budget(per=MINUTE)
    yield server.budget
    server.budget = usual


def limited(world: OpenAIWorld, *, requests: int = 1_000, tokens: int | None = None) -> OpenAIWorld:
    limit = RateLimit(requests=requests, tokens=tokens, interval=MINUTE)
    world.limiter = SharedRateLimiter(world.jobs.database, provider="openai", limit=limit)
    world.services = replace(world.services, limiter=world.limiter)
    return world


@pytest.fixture
def worlds(tmp_path: Path, clock: FakeClock, server: OpenAIServer) -> Iterator[list[OpenAIWorld]]:
    """Two workers of one queue."""
    opened = [OpenAIWorld(tmp_path, clock, server) for _ in range(2)]
    yield opened
    for world in opened:
        world.close()


def test_shared_budget_falls_to_what_the_provider_says_is_left(
    worlds: list[OpenAIWorld], budget: Budget
) -> None:
    world, other = (limited(world, tokens=100_000) for world in worlds)
    budget.requests, budget.tokens = 10, 5_000
    world.fill(3)

    report = world.run()

    left = other.limiter.allowance()
    assert report.embedded == 3
    assert (left.requests, left.tokens) == (9, 5_000 - report.tokens)


def test_tokens_that_an_answer_did_not_need_are_given_back(worlds: list[OpenAIWorld]) -> None:
    world, other = (limited(world, tokens=100_000) for world in worlds)
    world.create(entity(0, "0 1 2 3 4 5 6 7 8 9 " * 50))
    (fitted,) = world.services.provider.fit([world.text_of(uid(0))])

    report = world.run()

    assert 0 < report.tokens < fitted.tokens, "less was needed than was taken"
    assert other.limiter.allowance().tokens == 100_000 - report.tokens
