"""When the provider does not answer: all workers pause, and an outage fails no job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from embed_pipeline.domain.health import HealthStatus
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.lease import RefusalReason
from embed_pipeline.errors import (
    ErrorCategory,
    InputRefused,
    MalformedResponse,
    ProviderTimeout,
    ProviderUnavailable,
    TransientError,
)
from embed_pipeline.usecases.entities.force import force_embedding
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.outcomes import record_of
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.parts import WorkerClock
from embed_pipeline_tests.worker.scene import World, entity, uid

REQUEST_WIDE = [
    ProviderUnavailable("500"),
    ProviderTimeout("no answer"),
    MalformedResponse("not a number"),
]


def down(_: Sequence[str]) -> None:
    raise ProviderUnavailable("503")


@pytest.mark.parametrize("error", REQUEST_WIDE, ids=lambda error: type(error).__name__)
def test_shared_request_that_fails_opens_the_breaker_and_strikes_without_an_attempt(
    build: Build, error: TransientError
) -> None:
    world, other = build(), build()
    world.fill(5)
    world.provider.script.append(error)

    report = world.run()

    assert {(job.status, job.attempts, job.strikes) for job in world.all_jobs} == {
        (JobStatus.PENDING, 0, 1)
    }
    assert all(job.error == str(error) for job in world.all_jobs)
    breaker = world.jobs.breakers.read("mock")
    assert (breaker.level, breaker.until) == (1, world.clock.now() + SECOND)
    assert (report.stop_reason, report.back_at) == (StopReason.REFUSED, breaker.until)
    refusal = lease_batch(other.services, owner="worker-b").refusal
    assert refusal is not None
    assert refusal.reason is RefusalReason.BREAKER_OPEN


def test_lone_traveller_is_charged_an_attempt_and_backs_off(world: World) -> None:
    world.fill(1)
    world.provider.script.append(ProviderUnavailable("500"))

    report = world.run()

    job = world.job_of(uid(0))
    assert (job.status, job.attempts, report.retried) == (JobStatus.PENDING, 1, 1)
    assert SECOND <= job.available_at - world.clock.now() <= 1.25 * SECOND


def test_first_failure_of_many_requests_releases_the_unsent_ones(build: Build) -> None:
    world = build(max_inputs=1)
    world.fill(4)
    world.provider.script.append(ProviderUnavailable("500"))

    report = world.run()

    assert (report.requests, report.retried, report.released) == (1, 1, 3)


def test_after_the_pause_one_job_probes_uncharged_and_goes_behind_the_next(world: World) -> None:
    world.fill(3)
    world.provider.script.extend([ProviderUnavailable("500"), ProviderUnavailable("still")])
    world.run()
    world.clock.advance(SECOND)

    report = world.run()

    assert world.provider.requests[1:] == [["entity 0\nnote 0"]], "one job, alone"
    probe = world.job_of(uid(0))
    assert (probe.status, probe.attempts, probe.strikes) == (JobStatus.PENDING, 0, 1)
    assert probe.available_at == world.clock.now() + 2 * SECOND
    assert (report.leased, report.stop_reason) == (1, StopReason.REFUSED)
    assert world.jobs.breakers.read("mock").level == 2

    world.clock.advance(2 * SECOND)
    world.run(limit=1)

    assert world.provider.requests[2] == ["entity 1\nnote 1"], "the next one probes"


def test_refused_probe_closes_the_breaker_too(world: World) -> None:
    world.fill(3)
    world.provider.script.append(ProviderUnavailable("500"))
    world.run()
    world.clock.advance(SECOND)
    world.provider.script.append(InputRefused("400"))

    report = world.run()

    assert not world.jobs.breakers.read("mock").is_open
    assert (report.failed, report.embedded) == (1, 2)


def test_answered_probe_closes_the_breaker_and_the_run_goes_on(world: World) -> None:
    world.fill(5)
    world.provider.script.append(ProviderUnavailable("500"))
    world.run()
    world.clock.advance(SECOND)

    report = world.run()

    assert [len(request) for request in world.provider.requests] == [5, 1, 4]
    assert (report.embedded, report.stop_reason) == (5, StopReason.QUEUE_EMPTY)
    assert not world.jobs.breakers.read("mock").is_open
    assert world.jobs.health.report().status is HealthStatus.HEALTHY


def test_reused_vector_does_not_close_the_breaker(world: World) -> None:
    world.create(entity(0, "words"))
    world.run()
    world.jobs.breakers.trip("mock", seen=0, error=record_of(ProviderUnavailable("500")))
    world.clock.advance(SECOND)
    twin = type(entity(1))(uid=uid(1), name="entity 0", properties={"observations": ("words",)})
    world.create(twin)

    world.run()

    assert world.is_embedded(uid(1))
    assert world.jobs.breakers.read("mock").is_open


def test_probe_that_sends_nothing_lets_the_next_one_probe_at_once(world: World) -> None:
    world.create(entity(0, "words"))
    world.run()
    world.jobs.breakers.trip("mock", seen=0, error=record_of(ProviderUnavailable("500")))
    world.clock.advance(SECOND)
    twin = type(entity(1))(uid=uid(1), name="entity 0", properties={"observations": ("words",)})
    world.create(twin)
    world.fill(5, first=2)

    report = world.run()

    assert (report.reused, report.embedded, report.stop_reason) == (1, 5, StopReason.QUEUE_EMPTY)
    assert not world.jobs.breakers.read("mock").is_open


def test_probe_that_the_budget_denies_is_given_back(build: Build) -> None:
    world, other = build(requests=2), build()
    world.fill(3)
    world.jobs.breakers.trip("mock", seen=0, error=record_of(ProviderUnavailable("500")))
    world.clock.advance(SECOND)
    probe = lease_batch(world.services, owner="worker-a")
    world.spend(2)

    drain(world.services, owner="worker-a", first=probe)
    report = other.run(owner="worker-b")

    assert probe.probe
    assert report.embedded == 3


def test_urgent_text_that_always_breaks_the_provider_starves_no_job(world: World) -> None:
    world.fill(10)
    world.create(entity("bad", "poison"))
    force_embedding(world.services, key=uid("bad"))
    world.provider.always = break_on_poison

    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )

    assert world.job_of(uid("bad")).priority == 9
    assert all(world.is_embedded(uid(number)) for number in range(10))
    assert {job.attempts for job in world.all_jobs if job.entity_uid != uid("bad")} == {0}


def test_outage_of_many_pauses_fails_no_job_and_everything_is_embedded_afterwards(
    build: Build,
) -> None:
    world = build(max_inputs=10)
    world.fill(60)
    world.provider.always = down

    outage = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )

    assert outage.stop_reason in (StopReason.REFUSED, StopReason.TIME_UP)
    assert world.count(JobStatus.PENDING) == 60
    assert sum(job.attempts for job in world.all_jobs) == 0
    assert world.jobs.health.report().status is HealthStatus.DEGRADED
    assert len(world.provider.requests) < 80, "a probe a minute at most"

    world.provider.always = None
    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )

    assert world.count(JobStatus.COMPLETED) == 60
    assert all(world.is_embedded(uid(number)) for number in range(60))


def test_outage_met_by_single_requests_charges_each_worker_once_at_most(build: Build) -> None:
    world = build(max_inputs=1)
    world.fill(10)
    world.provider.always = down

    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )

    assert sorted(job.attempts for job in world.all_jobs) == [0] * 9 + [1]
    assert world.count(JobStatus.PENDING) == 10


def test_text_that_always_breaks_the_provider_fails_after_three_attempts_and_no_other(
    world: World,
) -> None:
    world.fill(20)
    world.create(entity("bad", "poison"))
    world.fill(20, first=20)
    world.provider.always = break_on_poison

    # Only an answered request tells an outage from a bad text, so others have to come by.
    for newcomer in range(100, 130):
        world.fill(1, first=newcomer)
        run_until_empty(
            world.services,
            owner="cli",
            recovery_interval=MINUTE,
            deadline=world.deadline(2 * MINUTE),
        )
        if world.job_of(uid("bad")).status is JobStatus.FAILED:
            break

    bad = world.job_of(uid("bad"))
    assert (bad.status, bad.attempts, bad.error_category) == (
        JobStatus.FAILED,
        3,
        ErrorCategory.TRANSIENT,
    )
    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )
    others = [job for job in world.all_jobs if job.id != bad.id]
    assert {job.status for job in others} == {JobStatus.COMPLETED}
    assert max(job.attempts for job in others) == 0


def test_unclassified_error_of_a_provider_fails_no_job_at_once(world: World) -> None:
    world.fill(3)
    world.provider.script.append(ZeroDivisionError("a bug"))

    world.run()

    assert {(job.status, job.attempts, job.strikes) for job in world.all_jobs} == {
        (JobStatus.PENDING, 0, 1)
    }
    assert world.job_of(uid(0)).error_category is ErrorCategory.TRANSIENT
    assert world.run().embedded == 3


@pytest.mark.parametrize("wrong_by", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_failed_probe_is_deferred_by_the_databases_clock(
    build: Build, clock: FakeClock, wrong_by: timedelta
) -> None:
    world = build(worker_clock=WorkerClock(clock, wrong_by=wrong_by))
    world.fill(2)
    world.provider.script.extend([ProviderUnavailable("500"), ProviderUnavailable("still")])
    world.run()
    world.clock.advance(SECOND)

    world.run()

    assert world.job_of(uid(0)).available_at == clock.now() + 2 * SECOND


def break_on_poison(texts: Sequence[str]) -> None:
    if any("poison" in text for text in texts):
        raise ProviderUnavailable("500")
