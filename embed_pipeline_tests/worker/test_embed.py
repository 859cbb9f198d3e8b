"""A batch from end to end: what is paid for, what is not, and what every job becomes."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.usecases.entities.force import force_embedding
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import HOUR, MINUTE, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.parts import WorkerClock
from embed_pipeline_tests.worker.scene import World, entity, uid


def named(number: int, name: str, note: str) -> NewEntity:
    return NewEntity(uid=uid(number), name=name, properties={"observations": (note,)})


def test_every_entity_gets_exactly_the_vector_of_its_text(world: World) -> None:
    world.fill(30)

    report = world.run()

    assert all(world.is_embedded(uid(number)) for number in range(30))
    assert world.count(JobStatus.COMPLETED) == 30
    assert (report.leased, report.embedded, report.stop_reason) == (30, 30, StopReason.QUEUE_EMPTY)
    assert len(world.provider.requests) == 1


def test_requests_carry_no_more_inputs_than_the_provider_takes(build: Build) -> None:
    world = build(max_inputs=7)
    world.fill(20)

    world.run()

    assert [len(request) for request in world.provider.requests] == [7, 7, 6]


def test_identical_texts_are_embedded_once_per_batch(world: World) -> None:
    world.create(*(named(number, "one name", "the same words") for number in range(5)))

    report = world.run()

    assert world.provider.requests == [["one name\nthe same words"]]
    assert all(world.is_embedded(uid(number)) for number in range(5))
    assert (report.embedded, report.reused) == (1, 4)


def test_vector_of_the_same_text_is_reused_across_batches_without_a_call(world: World) -> None:
    world.create(named(0, "one name", "the same words"))
    world.run()
    world.create(named(1, "one name", "the same words"))

    report = world.run()

    assert (report.reused, len(world.provider.requests)) == (1, 1)
    assert world.is_embedded(uid(1))


@pytest.mark.parametrize("number", [0, np.nan, np.inf])
def test_vector_that_another_program_made_invalid_is_paid_for_again(
    world: World, number: float
) -> None:
    world.create(named(0, "one name", "the same words"))
    world.run()
    world.spoil_vector(uid(0), number)
    world.create(named(1, "one name", "the same words"), entity(2))

    report = world.run()

    assert (report.embedded, report.reused, report.stop_reason) == (2, 0, StopReason.QUEUE_EMPTY)
    assert world.is_embedded(uid(1))
    assert world.is_embedded(uid(2))


def test_forced_job_pays_again(world: World) -> None:
    world.fill(1)
    world.run()
    force_embedding(world.services, entity_name="entity 0")

    report = world.run()

    assert (report.embedded, len(world.provider.requests)) == (1, 2)
    assert not world.job_of(uid(0)).force


def test_forced_job_pays_again_beside_a_twin_that_reuses(world: World) -> None:
    world.create(named(0, "one name", "the same words"))
    world.run()
    world.create(named(1, "one name", "the same words"))
    force_embedding(world.services, key=uid(0))

    report = world.run()

    assert (report.embedded, report.reused, len(world.provider.requests)) == (1, 1, 2)


def test_already_embedded_job_completes_without_a_call(build: Build) -> None:
    world, other = build(), build()
    world.fill(2)
    world.run()
    world.reopen_jobs()

    report = other.run(owner="worker-b")

    assert (report.reused, report.embedded, other.provider.requests) == (2, 0, [])
    assert world.count(JobStatus.COMPLETED) == 2


def test_huge_text_is_sent_in_a_request_of_its_own(world: World) -> None:
    world.create(entity(0), entity(1, "word " * 400_000), entity(2))

    report = world.run()

    assert [len(request) for request in world.provider.requests] == [1, 1, 1]
    assert report.embedded == 3
    assert world.is_embedded(uid(1))


@pytest.mark.parametrize("wrong_by", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_worker_clock_off_by_an_hour_changes_nothing(
    build: Build, clock: FakeClock, wrong_by: timedelta
) -> None:
    own_clock = WorkerClock(clock, wrong_by=wrong_by)
    world = build(max_inputs=1, requests=2, worker_clock=own_clock)
    world.fill(5)
    held_by_other = world.lease(1, owner="worker-b")

    report = run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(HOUR)
    )

    assert (report.embedded, report.lost) == (4, 0)
    assert world.job_of(uid(0)).lock_owner == "worker-b", "a live lease is not taken"
    assert world.jobs.heartbeat(held_by_other, held_by_other.job_ids).done
    assert 60 <= world.clock.monotonic() <= 70, "the budget is waited for by its own clock"
