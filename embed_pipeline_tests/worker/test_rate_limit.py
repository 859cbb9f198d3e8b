"""The shared budget: what is started is finished, what is not is given back at once."""

from __future__ import annotations

from dataclasses import replace

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.lease import RefusalReason
from embed_pipeline.errors import InputRefused, ProviderUnavailable
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import MILLISECOND, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.parts import WorkerClock
from embed_pipeline_tests.worker.scene import ONE_BY_ONE, entity, uid


def test_exhausted_limiter_releases_unstarted_jobs(build: Build, logs: Logbook) -> None:
    world = build(max_inputs=1, requests=10)
    world.fill(10)
    lease = lease_batch(world.services, owner="worker-a", limit=10)
    world.spend(7)

    report = drain(world.services, owner=lease.owner, first=lease, deadline=world.deadline())

    assert (report.leased, report.requests, report.embedded, report.released) == (10, 3, 3, 7)
    assert report.stop_reason is StopReason.BUDGET_SPENT
    done = [job.entity_uid for job in world.all_jobs if job.status is JobStatus.COMPLETED]
    assert done == [uid(0), uid(1), uid(2)]
    back = [job for job in world.all_jobs if job.status is JobStatus.PENDING]
    assert len(back) == 7
    assert all((job.attempts, job.strikes, job.lock_owner) == (0, 0, None) for job in back)
    assert len(world.lease(10, owner="worker-b", token="t2").jobs) == 7
    assert logs.of("jobs.released")[0]["count"] == 7
    assert logs.of("limiter.exhausted")[0]["workerId"] == "worker-a"


def test_failed_and_successful_started_jobs_both_end_before_the_rest_is_released(
    build: Build,
) -> None:
    world = build(max_inputs=1, requests=10)
    world.provider.script.extend([None, InputRefused("no"), None])
    world.fill(10)
    lease = lease_batch(world.services, owner="worker-a", limit=10)
    world.spend(7)

    report = drain(world.services, owner=lease.owner, first=lease, deadline=world.deadline())

    assert (report.embedded, report.failed, report.released) == (2, 1, 7)


def test_lease_takes_no_more_than_the_budget_can_serve(build: Build) -> None:
    world = build(max_inputs=2, requests=3)
    world.fill(20)
    world.spend(1)

    lease = lease_batch(world.services, owner="worker-a")

    assert len(lease.jobs) == 4


def test_spent_budget_refuses_the_lease_and_says_until_when(build: Build) -> None:
    world = build(max_inputs=1, requests=2)
    world.fill(3)
    world.spend(2)

    report = world.run()

    assert (report.leased, report.stop_reason) == (0, StopReason.BUDGET_SPENT)
    assert report.back_at is not None
    assert MINUTE + 2 * SECOND <= report.back_at - world.clock.now() <= MINUTE + 4 * SECOND
    refusal = lease_batch(world.services, owner="worker-a").refusal
    assert refusal is not None
    assert refusal.reason is RefusalReason.BUDGET_SPENT


def test_run_waits_for_the_budget_and_embeds_everything(build: Build) -> None:
    world = build(max_inputs=1, requests=2)
    world.fill(5)

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline()
    )

    assert (report.embedded, report.stop_reason) == (5, StopReason.QUEUE_EMPTY)
    assert world.clock.monotonic() >= 120


def test_heartbeat_extends_only_started_jobs_during_pause(build: Build, clock: FakeClock) -> None:
    own_clock = WorkerClock(clock)
    world = build(
        max_inputs=2,
        requests=1,
        worker_clock=own_clock,
        run_limits=replace(ONE_BY_ONE, heartbeat_interval=5 * MILLISECOND),
    )
    world.create(entity(0), entity(1, "poison"), entity(2), entity(3))
    world.provider.always = _refuse_poison
    ids = {job.entity_uid: job.id for job in world.all_jobs}
    lease = world.lease(4)
    seen: list[tuple[set[str], frozenset[str]]] = []
    own_clock.on_wait = lambda: seen.append(
        (
            {job.entity_uid for job in world.all_jobs if job.status is JobStatus.PENDING},
            world.jobs.next_beat(),
        )
    )

    drain(world.services, owner=lease.owner, first=lease, deadline=world.deadline(4 * MINUTE))

    released, extended = seen[0]
    assert released == {uid(2), uid(3)}, "jobs that were not started are released immediately"
    assert extended == {ids[uid(0)], ids[uid(1)]}, "started ones keep their lock by heartbeat"
    assert world.is_embedded(uid(0))
    assert world.job_of(uid(1)).status is JobStatus.FAILED


def test_retry_waits_for_tokens_separately_from_backoff(build: Build) -> None:
    world = build(requests=1)
    world.fill(1)
    world.provider.script.append(ProviderUnavailable("reset"))
    world.run()
    failed = world.job_of(uid(0))
    backoff = failed.available_at - world.clock.now()

    world.clock.advance(5 * SECOND)
    too_early = world.run()

    assert failed.attempts == 1
    assert SECOND <= backoff <= 1.25 * SECOND, "the backoff runs by itself"
    assert (too_early.leased, too_early.stop_reason) == (0, StopReason.BUDGET_SPENT)
    assert world.job_of(uid(0)).available_at == failed.available_at, "no timer moves the other"
    assert len(world.provider.requests) == 1

    world.clock.advance(MINUTE)
    world.run()

    assert world.job_of(uid(0)).status is JobStatus.COMPLETED
    assert world.job_of(uid(0)).attempts == 1


def _refuse_poison(texts: object) -> None:
    if "poison" in str(texts):
        raise InputRefused("One of these is refused.")
