"""Recovery at the start and every interval, and a loop that ends when nothing is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.recovery import Recovery
from embed_pipeline.errors import CredentialsRefused, ProviderUnavailable, RateLimited, StoreBusy
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.outcomes import record_of
from embed_pipeline.worker.recover import recover_owner, recover_stale
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import MILLISECOND, MINUTE, SECOND
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.scene import World, uid


def test_worker_recovers_once_before_its_first_lease(world: World, logs: Logbook) -> None:
    world.fill(2)
    world.lease(owner="crashed")
    world.clock.advance(5 * MINUTE + SECOND)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.embedded, world.count(JobStatus.COMPLETED)) == (2, 2)
    assert len(logs.of("jobs.recovered")) == 1
    assert logs.events.index("jobs.recovered") < logs.events.index("jobs.leased")
    entry = logs.of("jobs.recovered")[0]
    assert (entry["count"], entry["previousOwners"]) == (2, ["crashed"])
    assert logs.of("heartbeat.missed")[0]["workerId"] == "crashed"
    assert all((job.attempts, job.recoveries) == (0, 1) for job in world.all_jobs)


def test_recovery_runs_every_interval_and_logs_the_count(build: Build, logs: Logbook) -> None:
    world = build(max_inputs=1, requests=1)
    world.fill(5)
    world.lease(1, owner="crashed")

    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    # Four jobs at one a minute; the dead worker's lease ends in the sixth minute.
    counts = [entry["count"] for entry in logs.of("jobs.recovered")]
    assert len(counts) in (4, 5)
    assert set(counts) == {0}, "a pass that finds nothing is logged too"
    assert world.count(JobStatus.COMPLETED) == 4

    world.clock.advance(3 * MINUTE)
    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert [entry["count"] for entry in logs.of("jobs.recovered")][len(counts) :] == [1]
    assert world.count(JobStatus.COMPLETED) == 5


def test_job_with_live_lease_is_not_recovered(world: World) -> None:
    world.fill(1)
    world.lease(owner="worker-b")
    world.clock.advance(5 * MINUTE)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    job = world.job_of(uid(0))
    assert (job.status, job.lock_owner, report.leased) == (JobStatus.PROCESSING, "worker-b", 0)


def test_no_interval_means_no_recovery(world: World, logs: Logbook) -> None:
    world.fill(1)
    world.lease(owner="crashed")
    world.clock.advance(10 * MINUTE)

    run_until_empty(world.services, owner="cli", recovery_interval=None, deadline=world.deadline())

    assert logs.of("jobs.recovered") == []
    assert world.job_of(uid(0)).status is JobStatus.PROCESSING
    assert len(recover_stale(world.jobs).returned) == 1, "by hand it still works"


@pytest.mark.parametrize(
    "error", [StoreBusy("locked"), TypeError("malformed row")], ids=["ours", "a bug"]
)
def test_recovery_that_fails_is_logged_and_the_run_goes_on(
    world: World, logs: Logbook, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.fill(2)

    def failing(**_: object) -> Recovery:
        raise error

    monkeypatch.setattr(world.jobs, "recover_stale", failing)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert report.embedded == 2
    assert logs.of("recovery.failed")[0]["message"] == str(error)


def test_jobs_of_a_run_that_is_known_to_be_dead_need_not_wait(world: World, logs: Logbook) -> None:
    world.fill(3)
    world.lease(owner="run-1")

    recovery = recover_owner(world.jobs, "run-1")

    assert (len(recovery.returned), recovery.previous_owners) == (3, ("run-1",))
    assert logs.of("jobs.recovered")[0]["count"] == 3
    assert world.run().embedded == 3


def test_crashed_workers_jobs_are_finished_by_another_without_an_attempt(build: Build) -> None:
    world, other = build(max_inputs=1), build()
    world.fill(4)
    lease = world.lease(owner="worker-a")
    world.jobs.complete(lease, lease.job_ids[:1], reason="its vector was lost with the disk")
    world.clock.advance(5 * MINUTE + SECOND)

    report = run_until_empty(
        other.services, owner="worker-b", recovery_interval=MINUTE, deadline=other.deadline()
    )

    assert report.embedded == 3
    assert all(job.attempts == 0 for job in world.all_jobs)


def test_loop_waits_for_a_retry_and_ends_with_an_empty_queue(world: World) -> None:
    world.fill(1)
    world.provider.script.append(ProviderUnavailable("500"))

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.retried, report.embedded, report.stop_reason) == (1, 1, StopReason.QUEUE_EMPTY)
    assert world.job_of(uid(0)).attempts == 1


def test_loop_goes_on_after_a_429_whose_pause_is_over_at_once(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(requests=10)
    world.fill(3)
    world.provider.script.append(RateLimited("slow down", retry_after=MILLISECOND))
    pause = world.limiter.pause

    def past(duration: timedelta) -> None:
        pause(duration)
        world.clock.advance(SECOND)

    monkeypatch.setattr(world.limiter, "pause", past)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.embedded, report.stop_reason) == (3, StopReason.QUEUE_EMPTY)


def test_loop_goes_on_after_a_failure_when_anothers_probe_has_closed_the_breaker(
    world: World,
) -> None:
    world.fill(3)

    def straggle(_: Sequence[str]) -> None:
        error = ProviderUnavailable("503")
        opened = world.jobs.breakers.trip("mock", seen=0, error=record_of(error))
        world.jobs.breakers.close("mock", seen=opened.generation)
        raise error

    world.provider.script.append(straggle)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.embedded, report.stop_reason) == (3, StopReason.QUEUE_EMPTY)


def test_loop_goes_on_after_a_critical_error_from_before_a_resume(world: World) -> None:
    world.fill(3)

    def resumed_meanwhile(_: Sequence[str]) -> None:
        world.jobs.switch.pause("a person changes the key")
        world.jobs.switch.resume("done")
        raise CredentialsRefused("the old key")

    world.provider.script.append(resumed_meanwhile)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.embedded, report.stop_reason) == (3, StopReason.QUEUE_EMPTY)


def test_loop_ends_when_its_time_is_up(build: Build) -> None:
    world = build(max_inputs=1, requests=1)
    world.fill(100)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(3 * MINUTE)
    )

    assert 3 <= report.embedded <= 4
    assert world.count(JobStatus.PROCESSING) == 0
    assert world.clock.monotonic() <= 190


def test_loop_does_not_wait_for_a_budget_when_nothing_is_left(build: Build) -> None:
    world = build(max_inputs=1, requests=2)
    world.fill(2)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.stop_reason, world.clock.monotonic()) == (StopReason.QUEUE_EMPTY, 0)


def test_halted_queue_ends_the_loop(world: World) -> None:
    world.fill(1)
    world.jobs.switch.halt("disk full", seen=0)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.stop_reason, world.clock.monotonic()) == (StopReason.REFUSED, 0)


def test_every_batch_is_reported_while_the_run_goes_on(world: World) -> None:
    world.fill(5)
    seen: list[int] = []

    drain(world.services, owner="a", limit=2, on_batch=lambda report: seen.append(report.embedded))

    assert seen == [2, 4, 5]
