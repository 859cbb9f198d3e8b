"""The graph first, then the job; and a graph that is down, full, or changed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from embed_pipeline.domain.breaker import GRAPH
from embed_pipeline.domain.control import SwitchState
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.lease import RefusalReason
from embed_pipeline.errors import ErrorCategory, StoreAccessDenied, StoreFull, StoreUnavailable
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.parts import WorkerClock
from embed_pipeline_tests.worker.scene import ONE_BY_ONE, World, entity, uid

DOWN = StoreUnavailable("The graph cannot be reached.")


def uncharged(world: World) -> bool:
    return all((job.attempts, job.strikes) == (0, 0) for job in world.all_jobs)


# -- the text changes between embedding and write -----------------------------------------------


def test_text_changed_between_embedding_and_write_is_superseded_and_embedded_again(
    world: World,
) -> None:
    world.create(entity(0, "old"), entity(1))
    world.provider.script.append(lambda _: world.upsert(entity(0, "new")))

    report = world.run()

    assert world.has_vector_of(uid(0), "entity 0\nnew")
    assert world.is_embedded(uid(1))
    assert [job.status for job in world.jobs_of(uid(0))] == [JobStatus.COMPLETED] * 2
    assert (report.superseded, report.embedded) == (1, 2)


def test_text_changed_by_another_program_before_the_write_is_embedded_again(world: World) -> None:
    world.create(entity(0, "old"))
    world.provider.script.append(lambda _: world.write_as_another_program(uid(0), "theirs"))

    world.run()

    assert world.has_vector_of(uid(0), "entity 0\ntheirs")
    assert world.provider.texts == ["entity 0\nold", "entity 0\ntheirs"]


def test_text_changed_from_a_to_b_and_back_ends_with_the_vector_of_a(world: World) -> None:
    world.create(entity(0, "A"))
    world.provider.script.append(lambda _: world.upsert(entity(0, "B")))
    world.provider.script.append(lambda _: world.upsert(entity(0, "A")))

    world.run()

    assert world.has_vector_of(uid(0), "entity 0\nA")
    assert world.count(JobStatus.PENDING) == 0


def test_embedded_a_then_b_then_a_again_ends_with_the_vector_of_a(world: World) -> None:
    for text in "ABA":
        world.upsert(entity(0, text))
        world.run()
        assert world.has_vector_of(uid(0), f"entity 0\n{text}")


def test_other_properties_with_the_same_text_complete_in_the_next_batch(world: World) -> None:
    world.create(entity(0, "a", "b"))
    world.provider.script.append(lambda _: world.write_as_another_program(uid(0), "a\nb"))

    world.run()

    assert world.is_embedded(uid(0))
    assert {job.status for job in world.all_jobs} == {JobStatus.COMPLETED}


# -- the entity goes between embedding and write ------------------------------------------------


@pytest.mark.parametrize("how", ["soft delete", "removal"])
def test_entity_gone_between_embedding_and_write_fails_its_job_and_not_health(
    world: World, how: str
) -> None:
    world.fill(2)

    def go(_: Sequence[str]) -> None:
        if how == "removal":
            world.remove(uid(0))
        else:
            world.graph.soft_delete([uid(0)])

    world.provider.script.append(go)

    report = world.run()

    assert (report.leased, report.failed) == (2, 1), "failed at once"
    job = world.job_of(uid(0))
    assert (job.status, job.error_category) == (JobStatus.FAILED, ErrorCategory.PERMANENT)
    assert job.fail_code == "entity_gone"
    assert world.stored(uid(0)) is None
    assert world.is_embedded(uid(1))
    assert world.jobs.health.report().consecutive_failures == 0


# -- the graph is down --------------------------------------------------------------------------


def test_paid_vectors_are_written_when_the_graph_is_back_within_the_run(
    build: Build, clock: FakeClock
) -> None:
    own_clock = WorkerClock(clock)
    world = build(worker_clock=own_clock)
    world.fill(5)
    world.graph.trouble_with_writes.extend([DOWN, DOWN, DOWN])

    report = world.run()

    assert (report.embedded, len(world.provider.requests)) == (5, 1)
    assert own_clock.waits == [SECOND, 2 * SECOND, 4 * SECOND]
    assert uncharged(world)
    assert not world.jobs.breakers.read(GRAPH).is_open


def test_graph_down_beyond_the_runs_time_defers_the_paid_jobs_and_pays_for_no_more(
    build: Build,
) -> None:
    world = build(max_inputs=2, run_limits=replace(ONE_BY_ONE, drain_for=10 * SECOND, write_size=1))
    world.fill(10)
    world.graph.on_write = world.graph.go_down

    report = world.run()

    assert len(world.provider.requests) == 1, "what cannot be written is not paid for"
    assert (report.deferred, report.released, report.stop_reason) == (2, 8, StopReason.REFUSED)
    assert report.back_at == world.jobs.breakers.read(GRAPH).until
    assert {job.status for job in world.all_jobs} == {JobStatus.PENDING}
    assert uncharged(world)
    assert world.job_of(uid(0)).error == str(DOWN)


def test_nothing_is_leased_while_the_graph_is_down_and_all_goes_on_when_it_is_back(
    world: World,
) -> None:
    world.fill(3)
    world.run(limit=1)
    world.fill(3, first=3)
    world.graph.go_down()

    first, second = world.run(), world.run()
    world.clock.advance(MINUTE)
    third = world.run()

    assert [report.stop_reason for report in (first, second, third)] == [StopReason.REFUSED] * 3
    assert first.back_at is not None
    assert uncharged(world)

    world.graph.come_back()
    world.clock.advance(MINUTE)

    assert world.run().stop_reason is StopReason.QUEUE_EMPTY
    assert all(world.is_embedded(uid(number)) for number in range(6))


def test_graph_that_breaks_while_a_batch_is_read_charges_no_job(world: World) -> None:
    world.fill(3)
    lease = lease_batch(world.services, owner="worker-a")
    world.graph.go_down()

    report = drain(world.services, owner="worker-a", first=lease)

    assert (report.released, report.stop_reason) == (3, StopReason.REFUSED)
    assert report.back_at == world.clock.now() + SECOND
    assert uncharged(world)
    refusal = lease_batch(world.services, owner="worker-b").refusal
    assert refusal is not None
    assert refusal.reason is RefusalReason.BREAKER_OPEN


def test_run_waits_for_the_graph_and_embeds_everything(build: Build, clock: FakeClock) -> None:
    own_clock = WorkerClock(clock)
    world = build(worker_clock=own_clock)
    world.fill(3)
    world.graph.go_down()
    own_clock.on_wait = lambda: world.graph.come_back() if len(own_clock.waits) == 5 else None

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )

    assert (report.embedded, report.stop_reason) == (3, StopReason.QUEUE_EMPTY)


def test_full_disk_of_the_graph_halts_the_queue_and_keeps_the_jobs(build: Build) -> None:
    world = build(max_inputs=2)
    world.fill(4)
    world.graph.trouble_with_writes.append(StoreFull("disk full"))

    report = world.run()

    assert world.jobs.switch.read().state is SwitchState.HALTED
    assert (report.deferred, report.released, report.stop_reason) == (2, 2, StopReason.HALTED)
    assert uncharged(world)
    assert world.job_of(uid(0)).error_category is ErrorCategory.CRITICAL
    assert len(world.provider.requests) == 1


@pytest.mark.parametrize("wrong_by", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_pause_for_the_graph_does_not_depend_on_the_workers_clock(
    build: Build, clock: FakeClock, wrong_by: timedelta
) -> None:
    own_clock = WorkerClock(clock, wrong_by=wrong_by)
    world = build(worker_clock=own_clock)
    world.fill(2)
    world.graph.trouble_with_writes.extend([DOWN, DOWN])

    report = world.run()

    assert (report.embedded, len(world.provider.requests)) == (2, 1)
    assert own_clock.waits == [SECOND, 2 * SECOND]


# -- order ---------------------------------------------------------------------------------------


def test_vector_is_in_the_graph_before_its_job_is_completed(world: World) -> None:
    world.fill(1)
    statuses: list[JobStatus] = []
    world.graph.on_write = lambda: statuses.append(world.job_of(uid(0)).status)

    world.run()

    assert statuses == [JobStatus.PROCESSING]
    assert world.is_embedded(uid(0))


def test_vector_written_by_a_worker_that_died_before_completing_is_not_paid_again(
    world: World,
) -> None:
    world.fill(1)
    world.run()
    world.reopen_jobs()

    report = world.run()

    assert (report.reused, len(world.provider.requests)) == (1, 1)
    assert world.job_of(uid(0)).status is JobStatus.COMPLETED


def test_graph_that_refuses_our_credentials_halts_before_a_lease(world: World) -> None:
    world.fill(3)
    world.run()
    world.fill(2, first=10)
    world.graph.trouble = StoreAccessDenied("The graph refuses the password.")

    lease = lease_batch(world.services, owner="worker-a")

    assert lease.refusal is not None
    assert (lease.refusal.reason, lease.refusal.detail) == (
        RefusalReason.HALTED,
        "The graph refuses the password.",
    )
    assert {job.attempts for job in world.all_jobs} == {0}
