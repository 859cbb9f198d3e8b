"""The heartbeat: every held job is extended, a lost one is not, and silence is reported."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.lease import Lease
from embed_pipeline.errors import StoreBusy
from embed_pipeline.worker.heartbeat import Heartbeat
from embed_pipeline.worker.recover import recover_stale
from embed_pipeline.worker.run import drain
from embed_pipeline_tests.clocks import MILLISECOND, MINUTE, SECOND
from embed_pipeline_tests.stores.sqlite_queue import run_sql
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.scene import ONE_BY_ONE, World, uid

INTERVAL = 2 * MINUTE


def heartbeat(world: World, lease: Lease, interval: timedelta = INTERVAL) -> Heartbeat:
    return Heartbeat(world.jobs, lease, interval=interval, clock=world.clock)


def test_beat_extends_every_held_job_by_the_whole_lock(world: World) -> None:
    world.fill(3)
    lease = world.lease()
    world.clock.advance(INTERVAL)

    heartbeat(world, lease).beat()

    assert {job.lock_until for job in world.all_jobs} == {world.clock.now() + 5 * MINUTE}
    assert {job.lock_owner for job in world.all_jobs} == {"worker-a"}


def test_heartbeat_keeps_a_long_job_from_other_workers(world: World) -> None:
    world.fill(1)
    lease = world.lease()
    beating = heartbeat(world, lease)

    for _ in range(6):
        world.clock.advance(INTERVAL)
        beating.beat()

        assert world.jobs.recover_stale().jobs == ()
        assert world.lease(owner="worker-b", token="t2").jobs == ()
    assert world.job_of(uid(0)).lock_owner == "worker-a"
    assert beating.may_start(lease.job_ids)


def test_finished_jobs_are_extended_no_more(world: World) -> None:
    world.fill(3)
    lease = world.lease()
    beating = heartbeat(world, lease)

    beating.stop_extending(lease.job_ids[:2])
    beating.beat()

    assert world.jobs.beats == [frozenset(lease.job_ids[2:])]


def test_beat_with_nothing_held_runs_no_query(world: World, logs: Logbook) -> None:
    world.fill(1)
    lease = world.lease()
    beating = heartbeat(world, lease)
    beating.stop_extending(lease.job_ids)
    world.jobs.close()
    (world.home / "queue.sqlite").unlink()

    beating.beat()

    assert not (world.home / "queue.sqlite").exists()
    assert "heartbeat.failed" not in logs.events


def test_lost_lease_stops_new_work_on_those_jobs_alone(world: World, logs: Logbook) -> None:
    world.fill(2)
    lease = world.lease()
    beating = heartbeat(world, lease)
    lost, kept = lease.job_ids
    run_sql(world.jobs, "UPDATE embed_job SET lease_token = 'another' WHERE id = :id", id=lost)

    beating.beat()

    assert not beating.may_start([lost])
    assert beating.may_start([kept])
    assert not beating.may_start([lost, kept])
    entry = logs.of("lease.lost")[0]
    assert (entry["workerId"], entry["jobIds"]) == ("worker-a", [lost])


def test_error_in_a_beat_is_reported_and_the_next_beat_works(world: World, logs: Logbook) -> None:
    world.fill(1)
    beating = heartbeat(world, world.lease())
    world.jobs.trouble_with_beats.append(StoreBusy("locked"))

    beating.beat()
    world.clock.advance(MINUTE)
    beating.beat()

    assert [entry["message"] for entry in logs.of("heartbeat.failed")] == ["locked"]
    assert world.job_of(uid(0)).lock_until == world.clock.now() + 5 * MINUTE


@pytest.mark.parametrize(
    ("interval", "beats_until_warning"),
    [(MINUTE, 3), (INTERVAL, 2)],
    ids=["three intervals", "0.8 of the lock"],
)
def test_warning_after_three_silent_intervals_and_only_one(
    world: World, logs: Logbook, interval: timedelta, beats_until_warning: int
) -> None:
    world.fill(1)
    beating = heartbeat(world, world.lease(), interval)
    world.jobs.trouble_with_beats.extend([StoreBusy("locked")] * 6)

    warned_at: list[int] = []
    for beat in range(1, 6):
        world.clock.advance(interval)
        beating.beat()
        if len(logs.of("heartbeat.missed")) > len(warned_at):
            warned_at.append(beat)

    assert warned_at == [beats_until_warning]
    assert logs.of("heartbeat.missed")[0]["workerId"] == "worker-a"
    assert logs.of("heartbeat.missed")[0]["level"] == "warning"


def test_beat_that_succeeds_after_a_long_silence_is_reported_as_missed(
    world: World, logs: Logbook
) -> None:
    """The database hung, or the process was frozen: nothing was raised, and yet no beat came."""
    world.fill(1)
    beating = heartbeat(world, world.lease(), MINUTE)

    world.clock.advance(4 * MINUTE)
    beating.beat()
    world.clock.advance(MINUTE)
    beating.beat()

    (missed,) = logs.of("heartbeat.missed")
    assert (missed["workerId"], missed["silentFor"]) == ("worker-a", 240.0)
    assert missed["level"] == "warning"


def test_silence_that_was_reported_is_not_reported_again_by_the_beat_that_ends_it(
    world: World, logs: Logbook
) -> None:
    world.fill(1)
    beating = heartbeat(world, world.lease(), MINUTE)
    world.jobs.trouble_with_beats.append(StoreBusy("locked"))

    world.clock.advance(4 * MINUTE)
    beating.beat()
    beating.beat()

    assert len(logs.of("heartbeat.missed")) == 1


def test_silence_while_nothing_is_held_raises_no_alarm(world: World, logs: Logbook) -> None:
    world.fill(1)
    lease = world.lease()
    beating = heartbeat(world, lease, MINUTE)
    beating.stop_extending(lease.job_ids)

    world.clock.advance(4 * MINUTE)
    beating.beat()

    assert logs.of("heartbeat.missed") == []


def test_nothing_new_is_started_shortly_before_an_unextended_lease_ends(world: World) -> None:
    world.fill(1)
    lease = world.lease()
    beating = heartbeat(world, lease)
    world.clock.advance(0.89 * 5 * MINUTE)
    still = beating.may_start(lease.job_ids)

    world.clock.advance(0.02 * 5 * MINUTE)

    assert still
    assert not beating.may_start(lease.job_ids)


def test_beat_comes_at_least_every_two_fifths_of_a_short_lock(world: World) -> None:
    world.fill(1)
    lease = world.lease()
    short = Lease(owner=lease.owner, token=lease.token, duration=10 * SECOND, jobs=lease.jobs)

    assert heartbeat(world, short)._interval == 4 * SECOND


def test_held_jobs_are_extended_while_a_request_is_under_way(build: Build) -> None:
    world = build(max_inputs=2, run_limits=replace(ONE_BY_ONE, heartbeat_interval=5 * MILLISECOND))
    world.fill(4)
    lease = world.lease()
    extended: list[frozenset[str]] = []

    def slow(_: Sequence[str]) -> None:
        world.clock.advance(4 * MINUTE)
        extended.append(world.jobs.next_beat())

    world.provider.always = slow

    drain(world.services, owner=lease.owner, first=lease, deadline=world.deadline())

    assert extended[0] == frozenset(lease.job_ids)
    assert world.count(JobStatus.COMPLETED) == 4, "eight minutes of work on a lock of five"


def test_worker_whose_lease_was_taken_over_sends_nothing_more_and_releases_nothing(
    build: Build, logs: Logbook
) -> None:
    world = build(max_inputs=1, run_limits=replace(ONE_BY_ONE, heartbeat_interval=5 * MILLISECOND))
    world.fill(3)
    lease = world.lease()

    def stalled(_: Sequence[str]) -> None:
        world.clock.advance(6 * MINUTE)
        world.jobs.recover_stale()
        world.lease(owner="worker-b", token="t2")
        world.jobs.next_beat()
        world.jobs.next_beat()

    world.provider.script.append(stalled)

    report = drain(world.services, owner=lease.owner, first=lease, deadline=world.deadline())

    assert (report.requests, report.lost, report.embedded) == (1, 1, 0)
    assert {job.lock_owner for job in world.all_jobs} == {"worker-b"}
    assert "lease.lost" in logs.events


def test_heartbeat_thread_ends_with_its_batch(world: World) -> None:
    world.fill(1)

    world.run()

    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]


def test_recovery_pass_warns_of_a_silent_worker_whose_lock_still_holds(
    world: World, logs: Logbook
) -> None:
    world.fill(3)
    lease = world.lease(owner="worker-a")
    world.clock.advance(2 * INTERVAL + SECOND)

    recovery = recover_stale(world.jobs)

    (line,) = logs.of("jobs.silent")
    assert (line["level"], line["count"], line["workers"]) == ("warning", 3, ["worker-a"])
    assert sorted(line["jobIds"]) == sorted(lease.job_ids)
    assert line["silentFor"] == 241.0
    assert recovery.jobs == ()


def test_recovery_pass_says_nothing_of_workers_that_beat(world: World, logs: Logbook) -> None:
    world.fill(1)
    beating = heartbeat(world, world.lease())
    world.clock.advance(INTERVAL)
    beating.beat()
    world.clock.advance(INTERVAL)

    recover_stale(world.jobs)

    assert logs.of("jobs.silent") == []
