"""What the provider may answer, and whom that costs what."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

import pytest

from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import (
    CredentialsRefused,
    CriticalError,
    ErrorCategory,
    InputRefused,
    InputTooLarge,
    ModelNotFound,
    QuotaExhausted,
    RateLimited,
)
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import MINUTE, SECOND
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.scene import World, entity, uid

CRITICAL_ERRORS = [
    CredentialsRefused("key revoked"),
    ModelNotFound("no such model"),
    QuotaExhausted("insufficient_quota"),
]


# -- 429 --------------------------------------------------------------------------------------


def test_429_pauses_all_workers_until_retry_after_and_charges_no_job(build: Build) -> None:
    world, other = build(requests=100), build(requests=100)
    world.fill(3)
    world.provider.script.append(RateLimited("slow down", retry_after=30 * SECOND))
    now = world.clock.now()

    report = world.run()

    assert (report.stop_reason, report.back_at) == (StopReason.BUDGET_SPENT, now + 30 * SECOND)
    assert {(job.status, job.attempts, job.strikes) for job in world.all_jobs} == {
        (JobStatus.PENDING, 0, 0)
    }
    assert other.run(owner="worker-b").leased == 0
    assert world.jobs.health.report().consecutive_failures == 0

    world.clock.advance(30 * SECOND)
    other.run(owner="worker-b")

    assert world.count(JobStatus.COMPLETED) == 3


def test_429_without_retry_after_pauses_for_ten_seconds(build: Build) -> None:
    world = build(requests=100)
    world.fill(1)
    world.provider.script.append(RateLimited("slow down"))
    now = world.clock.now()

    report = world.run()

    assert report.back_at == now + 10 * SECOND
    assert world.job_of(uid(0)).attempts == 0


def test_429_that_calls_the_request_too_large_halves_it(world: World) -> None:
    world.fill(4)
    world.provider.script.append(InputTooLarge("Request too large"))

    report = world.run()

    assert [len(request) for request in world.provider.requests] == [4, 2, 2]
    assert (report.embedded, report.failed) == (4, 0)


def test_one_text_that_is_too_large_alone_fails_for_good(world: World) -> None:
    world.fill(1)
    world.provider.script.append(InputTooLarge("Request too large"))

    world.run()

    job = world.job_of(uid(0))
    assert (job.status, job.error_category) == (JobStatus.FAILED, ErrorCategory.PERMANENT)


# -- CRITICAL ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", CRITICAL_ERRORS, ids=lambda error: type(error).__name__)
def test_critical_error_stops_the_batch_and_releases_the_rest(
    build: Build, logs: Logbook, error: CriticalError
) -> None:
    world = build(max_inputs=2)
    world.fill(6)
    world.provider.script.extend([None, error])

    report = world.run()

    assert (report.requests, report.embedded, report.deferred, report.released) == (2, 2, 2, 2)
    assert (report.stop_reason, report.critical) == (StopReason.HALTED, str(error))
    started = world.job_of(uid(2))
    assert (started.status, started.attempts, started.strikes) == (JobStatus.PENDING, 0, 0)
    assert (started.error, started.error_category) == (str(error), ErrorCategory.CRITICAL)
    assert world.job_of(uid(4)).error is None
    switch = world.jobs.switch.read()
    assert (switch.state, switch.reason) == (SwitchState.HALTED, str(error))
    halted = logs.of("queue.halted")[0]
    assert halted["level"] == "critical"
    assert halted["workerId"]
    assert halted["jobIds"]
    assert world.jobs.health.report().status is HealthStatus.CRITICAL


def test_halted_queue_leases_nothing_until_a_person_resumes_it(build: Build) -> None:
    world, other = build(), build()
    world.fill(3)
    world.provider.script.append(CredentialsRefused("key revoked"))
    world.run()
    world.clock.advance(60 * MINUTE)

    refused = other.run(owner="worker-b")
    world.jobs.switch.resume("new key")
    resumed = other.run(owner="worker-b")

    assert (refused.leased, refused.stop_reason, refused.back_at) == (0, StopReason.REFUSED, None)
    assert other.provider.requests == [["entity 0\nnote 0", "entity 1\nnote 1", "entity 2\nnote 2"]]
    assert resumed.embedded == 3


def test_switch_is_read_before_each_request(build: Build) -> None:
    world = build(max_inputs=1)
    world.fill(3)
    world.provider.script.append(lambda _: world.jobs.switch.pause("lunch"))

    report = world.run()

    assert (report.requests, report.embedded, report.released) == (1, 1, 2)
    assert report.stop_reason is StopReason.REFUSED


def test_error_of_a_request_sent_before_a_resume_does_not_halt_again(world: World) -> None:
    world.fill(1)

    def resumed_meanwhile(_: Sequence[str]) -> None:
        world.jobs.switch.pause("a person changes the key")
        world.jobs.switch.resume("done")
        raise CredentialsRefused("the old key")

    world.provider.script.append(resumed_meanwhile)

    world.run()

    assert world.jobs.switch.read().is_running
    assert world.job_of(uid(0)).attempts == 0
    assert world.run().embedded == 1


# -- 400 --------------------------------------------------------------------------------------


def test_one_poison_text_of_a_hundred_fails_alone_within_few_calls(world: World) -> None:
    world.fill(63)
    world.create(entity("bad", "poison"))
    world.fill(36, first=63)
    world.provider.always = refuse_poison

    report = world.run()

    bad = world.job_of(uid("bad"))
    assert (report.embedded, report.failed) == (99, 1)
    assert all(world.is_embedded(uid(number)) for number in range(99))
    assert (bad.status, bad.error_category) == (JobStatus.FAILED, ErrorCategory.PERMANENT)
    assert (bad.attempts, bad.error_type) == (1, "InputRefused")
    assert len(world.provider.requests) <= 2 * ceil(log2(100)) + 1
    assert not world.jobs.breakers.read("mock").is_open, "the provider did answer"


def test_poison_text_that_two_entities_share_fails_both_and_no_other(world: World) -> None:
    twins = [
        type(entity(0))(uid=uid(n), name="twin", properties={"observations": ("poison",)})
        for n in range(2)
    ]
    world.create(*twins, entity(2), entity(3))
    world.provider.always = refuse_poison

    world.run()

    assert [job.status for job in world.all_jobs] == [
        JobStatus.FAILED,
        JobStatus.FAILED,
        JobStatus.COMPLETED,
        JobStatus.COMPLETED,
    ]


def test_failed_job_records_category_message_stack_and_attempt(world: World) -> None:
    world.create(entity(0, "poison"))
    world.provider.always = refuse_poison

    world.run()

    job = world.job_of(uid(0))
    assert job.error_category is ErrorCategory.PERMANENT
    assert job.error == "One of these is refused."
    assert "refuse_poison" in (job.error_stack or "")
    assert (job.attempts, job.processed_at) == (1, world.clock.now())


def refuse_poison(texts: Sequence[str]) -> None:
    if any("poison" in text for text in texts):
        raise InputRefused("One of these is refused.")
