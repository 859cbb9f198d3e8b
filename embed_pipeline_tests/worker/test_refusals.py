"""A refused text: its own fault, or that of a setting, which a harmless text tells apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import InputRefused, ProviderUnavailable, RateLimited
from embed_pipeline.worker.packing import HARMLESS
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import MINUTE, SECOND
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import World, entity

Answer = Callable[[Sequence[str]], None]


def refuse_all(texts: Sequence[str]) -> None:
    raise InputRefused("this model takes no dimensions")


def refuse_all_and_answer_the_check_with(error: Exception) -> Answer:
    def answer(texts: Sequence[str]) -> None:
        raise error if list(texts) == [HARMLESS.text] else InputRefused("no")

    return answer


def refuse_but_the_harmless(texts: Sequence[str]) -> None:
    if list(texts) != [HARMLESS.text]:
        raise InputRefused("no")


@pytest.mark.parametrize(("budget", "jobs"), [(1, 1), (1, 4), (2, 4), (5, 16), (20, 300)])
def test_setting_that_is_refused_fails_no_job_however_small_the_budget(
    build: Build, budget: int, jobs: int
) -> None:
    world = build(requests=budget)
    world.fill(jobs)
    world.provider.always = refuse_all

    report = world.run()
    for _ in range(10):
        if report.stop_reason is StopReason.HALTED:
            break
        world.clock.advance(2 * MINUTE)
        report = world.run()

    assert report.stop_reason is StopReason.HALTED
    assert {(job.status, job.attempts) for job in world.all_jobs} == {(JobStatus.PENDING, 0)}


def test_rate_limit_met_by_the_check_pauses_all_workers_and_fails_no_job(build: Build) -> None:
    world = build(requests=10)
    world.fill(2)
    error = RateLimited("429", retry_after=30 * SECOND)
    world.provider.always = refuse_all_and_answer_the_check_with(error)

    report = world.run()

    assert (report.stop_reason, report.failed) == (StopReason.BUDGET_SPENT, 0)
    assert world.limiter.allowance().back_at == world.clock.now() + 30 * SECOND
    assert {(job.status, job.attempts) for job in world.all_jobs} == {(JobStatus.PENDING, 0)}


def test_outage_met_by_the_check_opens_the_breaker_and_charges_no_job(world: World) -> None:
    world.fill(2)
    world.provider.always = refuse_all_and_answer_the_check_with(ProviderUnavailable("503"))

    report = world.run()

    assert (report.stop_reason, report.failed) == (StopReason.REFUSED, 0)
    assert world.jobs.breakers.read("mock").is_open
    assert {(job.status, job.attempts, job.strikes) for job in world.all_jobs} == {
        (JobStatus.PENDING, 0, 0)
    }


def test_check_is_counted_as_any_request(build: Build) -> None:
    world = build(requests=10, tokens=1_000)
    world.fill(1)
    world.provider.always = refuse_but_the_harmless

    report = world.run()

    assert (report.failed, report.requests) == (1, 2)
    assert world.limiter.allowance().requests == 8
    assert world.jobs.counters.read()["provider_requests"] == 2


@pytest.mark.parametrize("budget", [1, 2])
def test_refused_text_alone_in_the_queue_fails_however_small_the_budget(
    build: Build, budget: int
) -> None:
    world = build(requests=budget)
    world.fill(1)
    world.provider.always = refuse_but_the_harmless

    world.run()

    assert [(job.status, job.error_type) for job in world.all_jobs] == [
        (JobStatus.FAILED, "InputRefused")
    ]


# -- errors of one text that several have ------------------------------------------------------


def test_entities_with_one_text_are_not_charged_for_each_other(world: World) -> None:
    world.create(*(replace(entity(number, "the same"), name="one name") for number in range(5)))
    world.provider.script.append(ProviderUnavailable("503"))

    report = world.run()

    assert report.deferred == 5
    assert {(job.attempts, job.strikes) for job in world.all_jobs} == {(0, 1)}
    assert world.jobs.health.report().consecutive_failures == 1


def test_outage_of_a_lone_job_counts_once_in_the_health(world: World) -> None:
    world.fill(1)
    world.provider.script.append(ProviderUnavailable("503"))

    report = world.run()

    assert (report.retried, world.jobs.health.report().consecutive_failures) == (1, 1)
