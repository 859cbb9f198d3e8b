"""Cleanup deletes what ended before the retention, and nothing else."""

from __future__ import annotations

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import InputRefused
from embed_pipeline.usecases.entities.discover import discover
from embed_pipeline.usecases.queue.control import cleanup_ttl
from embed_pipeline_tests.clocks import DAY, SECOND
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.scene import World, entity, uid


def refuse_poison(texts: object) -> None:
    if "poison" in str(texts):
        raise InputRefused("refused")


def test_ended_jobs_past_retention_are_deleted_and_others_stay(world: World, logs: Logbook) -> None:
    world.provider.always = refuse_poison
    world.create(entity(0), entity(1, "poison"))
    world.run()
    world.clock.advance(7 * DAY)
    world.fill(1, first=2)
    world.run()
    world.fill(2, first=3)
    world.lease(1, owner="worker-b")
    world.clock.advance(7 * DAY + SECOND)

    report = cleanup_ttl(world.jobs, older_than=14 * DAY)

    assert (report.completed, report.failed) == (1, 1)
    assert [(job.entity_uid, job.status) for job in world.all_jobs] == [
        (uid(2), JobStatus.COMPLETED),
        (uid(3), JobStatus.PROCESSING),
        (uid(4), JobStatus.PENDING),
    ]
    entry = logs.of("jobs.cleaned_up")[0]
    assert (entry["count"], entry["completed"], entry["failed"]) == (2, 1, 1)


def test_cleanup_queues_nothing_that_is_embedded_again(world: World) -> None:
    world.fill(3)
    world.run()
    world.clock.advance(15 * DAY)

    cleanup_ttl(world.jobs, older_than=14 * DAY)

    assert world.all_jobs == []
    assert discover(world.services).new_jobs == 0
    assert world.is_embedded(uid(0))


def test_failed_job_is_eligible_for_cleanup_after_retention(world: World) -> None:
    world.provider.always = refuse_poison
    world.create(entity(0, "poison"))
    world.run()
    world.clock.advance(14 * DAY)
    at_retention = cleanup_ttl(world.jobs, older_than=14 * DAY)
    world.clock.advance(SECOND)

    after_retention = cleanup_ttl(world.jobs, older_than=14 * DAY)

    assert (at_retention.jobs, after_retention.failed) == (0, 1)
