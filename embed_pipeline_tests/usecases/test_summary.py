"""The work that `summary` shows: of all workers, back to a longer pause."""

from __future__ import annotations

import pytest

from embed_pipeline.domain.job import EntityUid, JobRequest
from embed_pipeline.usecases.insight import summary
from embed_pipeline.usecases.insight.summary import PAUSE, Work, work_done
from embed_pipeline_tests.clocks import SECOND
from embed_pipeline_tests.worker.scene import MODEL, World


def complete(world: World, *names: str, owner: str) -> None:
    """A worker leases these jobs, and completes them a second later."""
    jobs = world.jobs
    jobs.enqueue([JobRequest(entity_uid=EntityUid(n), model=MODEL, version="1") for n in names])
    lease = jobs.lease(owner=owner, model=MODEL, limit=len(names), token=f"{owner}{names}")
    world.clock.advance(SECOND)
    jobs.complete(lease, lease.job_ids)


def test_work_of_two_workers_is_counted_together(world: World) -> None:
    complete(world, "a", "b", "c", owner="first")
    complete(world, "d", owner="second")
    complete(world, "e", owner="first")

    work = work_done(world.jobs)

    assert work == Work(completed=5, took=3 * SECOND)
    assert str(work) == "5 embedded in 3.0 s (2 per second)"


def test_work_before_a_longer_pause_is_not_counted(world: World) -> None:
    complete(world, "a", owner="first")
    world.clock.advance(PAUSE)
    complete(world, "b", owner="first")

    assert work_done(world.jobs) == Work(completed=1, took=SECOND)


def test_work_since_a_time_is_counted_over_pauses(world: World) -> None:
    complete(world, "a", owner="first")
    world.clock.advance(SECOND)
    since = world.jobs.now()
    for name in "bc":
        complete(world, name, owner=name)
        world.clock.advance(PAUSE)

    assert work_done(world.jobs, since=since) == Work(completed=2, took=PAUSE + 2 * SECOND)


def test_more_work_than_is_read_is_shown_as_a_part(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "LATEST", 2)
    for name in "abc":
        complete(world, name, owner="first")

    assert str(work_done(world.jobs)).startswith("at least 2 embedded")


def test_queue_without_work_has_nothing_done(world: World) -> None:
    assert str(work_done(world.jobs)) == "nothing was left to do"
