"""Leasing ahead, requests in flight and writes beside each other: overlapped, and bounded."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from embed_pipeline.domain.breaker import Breaker
from embed_pipeline.domain.embedding import VectorWrite, WriteReport
from embed_pipeline.domain.entity import Entity
from embed_pipeline.domain.job import EntityUid, JobId, JobStatus
from embed_pipeline.domain.lease import Lease
from embed_pipeline.domain.window import Spent
from embed_pipeline.errors import (
    CredentialsRefused,
    InputRefused,
    ProviderUnavailable,
    RateLimited,
    StoreFull,
    StoreUnavailable,
)
from embed_pipeline.worker.context import RunLimits
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.outcomes import record_of
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline, StopReason
from embed_pipeline_tests.clocks import MILLISECOND, MINUTE, SECOND
from embed_pipeline_tests.stores.sqlite_queue import run_sql
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.scene import World, entity, uid
from embed_pipeline_tests.worker.test_run import Interrupt

PATIENCE = 10.0
WIDE = RunLimits(concurrency=3, writers=2, ahead=1, write_size=2)


class Together:
    """Requests that answer only when `count` of them are under way at once."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count, timeout=PATIENCE)

    def __call__(self, _: Sequence[str]) -> None:
        self._barrier.wait()


class Crowd:
    """How many requests were under way at once, at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = 0

    def __call__(self, _: Sequence[str]) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        threading.Event().wait(0.002)
        with self._lock:
            self.now -= 1


def test_several_requests_are_under_way_at_once(build: Build) -> None:
    world = build(max_inputs=2, run_limits=WIDE)
    world.fill(12)
    world.provider.always = Together(3)

    report = world.run()

    assert (report.embedded, report.requests) == (12, 6)
    assert all(world.is_embedded(uid(number)) for number in range(12))


@pytest.mark.parametrize("limit", [None, 2], ids=["of one batch", "of many batches"])
def test_never_more_requests_are_under_way_than_configured(build: Build, limit: int | None) -> None:
    world = build(max_inputs=1, run_limits=WIDE)
    world.fill(40)
    crowd = Crowd()
    world.provider.always = crowd

    report = world.run(limit=limit)

    assert report.embedded == 40
    assert crowd.most <= 3


def test_next_batch_is_leased_while_a_request_is_under_way(build: Build) -> None:
    world = build(run_limits=replace(WIDE, concurrency=2))
    world.fill(4)
    world.provider.always = Together(2)

    report = world.run(limit=2)

    assert [len(request) for request in world.provider.requests] == [2, 2]
    assert report.embedded == 4


def test_next_batch_is_leased_while_the_only_request_is_under_way(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(run_limits=replace(WIDE, concurrency=1))
    world.fill(4)
    lease, leases = world.jobs.lease, threading.Semaphore(0)

    def watched(**wanted: Any) -> Lease:
        leased = lease(**wanted)
        leases.release()
        return leased

    def two_leases_later(_: Sequence[str]) -> None:
        _must(leases.acquire(timeout=PATIENCE))
        _must(leases.acquire(timeout=PATIENCE))

    monkeypatch.setattr(world.jobs, "lease", watched)
    world.provider.script.append(two_leases_later)

    assert world.run(limit=2).embedded == 4


def test_vectors_are_written_while_the_next_request_is_under_way(build: Build) -> None:
    world = build(max_inputs=2, run_limits=replace(WIDE, concurrency=1))
    world.fill(4)
    written = threading.Event()
    world.graph.on_write = written.set
    world.provider.script.extend([None, lambda _: _must(written.wait(PATIENCE))])

    assert world.run().embedded == 4


def test_writers_that_fall_behind_hold_up_further_requests(build: Build) -> None:
    run_limits = replace(WIDE, concurrency=1, writers=1, write_size=1)
    world = build(max_inputs=2, run_limits=run_limits)
    world.fill(40)
    sent_while_stuck: list[int] = []

    def stuck() -> None:
        world.graph.on_write = None
        threading.Event().wait(0.3)
        sent_while_stuck.append(len(world.provider.requests))

    world.graph.on_write = stuck

    report = world.run()

    assert report.embedded == 40
    # The pages of two requests may wait, the page under way aside: then nothing more is paid for.
    assert sent_while_stuck[0] <= 3


@pytest.mark.parametrize("concurrency", [1, 2])
def test_run_holds_no_more_batches_than_its_plan_allows(build: Build, concurrency: int) -> None:
    world = build(run_limits=replace(WIDE, concurrency=concurrency, writers=1))
    world.fill(60)
    held: list[int] = []

    def stuck() -> None:
        world.graph.on_write = None
        threading.Event().wait(0.5)
        held.append(world.count(JobStatus.PROCESSING))

    world.graph.on_write = stuck

    report = world.run(limit=2)

    assert report.embedded == 60
    assert 0 < held[0] <= 2 * world.services.run_limits.most_batches


# -- one of several fails ----------------------------------------------------------------------


def test_answers_under_way_are_kept_when_another_request_meets_429(build: Build) -> None:
    world = build(max_inputs=2, requests=100, run_limits=WIDE)
    world.fill(12)
    meet = Together(3)

    def answer(texts: Sequence[str]) -> None:
        if len(world.provider.requests) <= 3:
            meet(texts)
        if "entity 0\nnote 0" in texts:
            raise RateLimited("slow down", retry_after=30 * SECOND)

    world.provider.always = answer

    report = world.run()

    assert report.stop_reason is StopReason.BUDGET_SPENT
    assert report.embedded >= 4, "the two beside it, and what was sent before it was known"
    assert report.embedded + report.released == 12
    assert {(job.attempts, job.strikes) for job in world.all_jobs} == {(0, 0)}
    assert report.back_at == world.clock.now() + 30 * SECOND


def test_requests_that_fail_together_open_the_breaker_once_and_charge_no_job(build: Build) -> None:
    world = build(max_inputs=2, run_limits=WIDE)
    world.fill(12)
    meet = Together(3)

    def broken(texts: Sequence[str]) -> None:
        meet(texts)
        raise ProviderUnavailable("503")

    world.provider.always = broken

    report = world.run()

    assert (report.requests, report.deferred, report.released) == (3, 6, 6)
    assert world.jobs.breakers.read("mock").level == 1
    assert world.jobs.health.report().consecutive_failures == 1
    assert {(job.status, job.attempts) for job in world.all_jobs} == {(JobStatus.PENDING, 0)}


def test_critical_error_beside_good_answers_keeps_them_and_halts(build: Build) -> None:
    world = build(max_inputs=2, run_limits=WIDE)
    world.fill(12)
    meet = Together(3)

    def answer(texts: Sequence[str]) -> None:
        if len(world.provider.requests) <= 3:
            meet(texts)
        if "entity 2\nnote 2" in texts:
            raise CredentialsRefused("key revoked")

    world.provider.always = answer

    report = world.run()

    assert (report.stop_reason, report.critical) == (StopReason.HALTED, "key revoked")
    assert report.embedded >= 4, "the two beside it, and what was sent before it was known"
    assert (report.deferred, report.embedded + report.released) == (2, 10)
    assert not world.jobs.switch.read().is_running


def test_full_disk_of_the_graph_defers_every_vector_that_waits(build: Build) -> None:
    world = build(max_inputs=2, run_limits=replace(WIDE, writers=1, write_size=1))
    world.fill(6)
    world.provider.always = Together(3)
    world.graph.trouble_with_writes.extend([StoreFull("disk full")] * 6)

    report = world.run()

    assert (report.stop_reason, report.embedded) == (StopReason.HALTED, 0)
    assert {(job.status, job.attempts) for job in world.all_jobs} == {(JobStatus.PENDING, 0)}


def test_poison_text_is_found_while_other_requests_go_on(build: Build) -> None:
    world = build(max_inputs=16, run_limits=WIDE)
    world.fill(63)
    world.create(entity("bad", "poison"))

    def refuse(texts: Sequence[str]) -> None:
        if any("poison" in text for text in texts):
            raise InputRefused("no")

    world.provider.always = refuse

    report = world.run()

    assert (report.embedded, report.failed) == (63, 1)
    assert len(world.provider.requests) <= 4 + 2 * 4


# -- suspects are held alone -------------------------------------------------------------------


def test_suspects_are_embedded_while_the_run_holds_nothing_else(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(run_limits=WIDE)
    world.fill(12)
    run_sql(world.jobs, "UPDATE embed_job SET strikes = 2 WHERE entity_uid = 'e006'")
    held: dict[str, set[EntityUid]] = {}
    suspected = threading.Event()
    lease = world.jobs.lease

    def watched(**wanted: Any) -> Lease:
        leased = lease(**wanted)
        if any(job.strikes for job in leased.jobs):
            suspected.set()
        return leased

    def look(texts: Sequence[str]) -> None:
        if "entity 4\nnote 4" in texts:
            assert suspected.wait(PATIENCE), "leased ahead, while these are held"
        now = {job.entity_uid for job in world.all_jobs if job.status is JobStatus.PROCESSING}
        held.update(dict.fromkeys(texts, now))

    monkeypatch.setattr(world.jobs, "lease", watched)
    world.provider.always = look

    report = world.run(limit=2)

    assert report.embedded == 12
    assert held["entity 6\nnote 6"] == {uid(6)}


def test_probe_that_comes_to_a_run_which_holds_others_is_given_back_at_once(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(run_limits=replace(WIDE, concurrency=2))
    world.fill(6)
    leases: list[Lease] = []
    free_again = threading.Event()
    lease, give_back = world.jobs.lease, world.jobs.breakers.give_back_probe

    def behind_an_outage(**wanted: Any) -> Lease:
        if len(leases) == 1:
            error = record_of(ProviderUnavailable("503"))
            world.jobs.breakers.trip("mock", seen=0, error=error)
            world.clock.advance(SECOND)
        leases.append(lease(**wanted))
        return leases[-1]

    def watched(name: str, *, seen: int) -> Breaker:
        breaker = give_back(name, seen=seen)
        free_again.set()
        return breaker

    monkeypatch.setattr(world.jobs, "lease", behind_an_outage)
    monkeypatch.setattr(world.jobs.breakers, "give_back_probe", watched)
    world.provider.script.append(lambda _: _must(free_again.wait(PATIENCE)))

    report = world.run(limit=2)

    assert leases[1].probe
    assert (report.embedded, report.stop_reason) == (6, StopReason.QUEUE_EMPTY)


# -- the budget --------------------------------------------------------------------------------


def test_grant_that_grew_old_before_it_was_sent_is_given_back_and_taken_again(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(requests=5)
    world.fill(1)
    taken: list[Spent] = []
    take = world.limiter.take

    def slow_take(cost: Spent) -> object:
        grant = take(cost)
        taken.append(cost)
        if len(taken) == 1:
            world.clock.advance(2 * SECOND)
        return grant

    monkeypatch.setattr(world.limiter, "take", slow_take)

    report = world.run()

    assert (report.embedded, report.requests, len(taken)) == (1, 1, 2)
    assert world.limiter.allowance().requests == 4, "the old grant is not lost"


def test_short_interval_sends_though_the_queue_takes_longer_than_a_sub_bucket(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(requests=5, interval=SECOND)
    world.fill(1)
    taken: list[Spent] = []
    read, take = world.jobs.control_state, world.limiter.take

    def slow_read(*, provider: str) -> object:
        world.clock.advance(300 * MILLISECOND)
        return read(provider=provider)

    def slow_take(cost: Spent) -> object:
        taken.append(cost)
        assert len(taken) < 5, "grant after grant grows old"
        world.clock.advance(100 * MILLISECOND)
        return take(cost)

    monkeypatch.setattr(world.jobs, "control_state", slow_read)
    monkeypatch.setattr(world.limiter, "take", slow_take)

    report = world.run()

    assert (report.embedded, len(taken)) == (1, 1)


def test_parallel_requests_never_overdraw_the_budget(build: Build) -> None:
    world = build(max_inputs=1, requests=4, run_limits=WIDE)
    world.fill(10)

    report = world.run()

    assert (report.requests, report.embedded, report.stop_reason) == (4, 4, StopReason.BUDGET_SPENT)
    assert world.count(JobStatus.PROCESSING) == 0


# -- nothing is kept by a heartbeat -------------------------------------------------------------


def heartbeats() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "heartbeat"}


@pytest.mark.parametrize("broken", ["trip", "trip and release"])
def test_batch_whose_texts_cannot_be_read_is_let_go_though_the_queue_fails_too(
    world: World, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    world.fill(2)

    def down(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(world.graph, "read_entities", down)
    monkeypatch.setattr(world.jobs.breakers, "trip", down)
    if broken == "trip and release":
        monkeypatch.setattr(world.jobs, "release", down)
    before = heartbeats()

    with pytest.raises(StoreUnavailable):
        world.run()

    assert heartbeats() <= before, "extended no longer"
    if broken == "trip":
        assert world.count(JobStatus.PENDING) == 2


def test_jobs_that_a_graph_forgets_to_report_are_given_back_at_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fill(3)
    write = world.graph.write_vectors

    def forgetful(writes: Sequence[VectorWrite], *, model: str) -> WriteReport:
        report = write(writes, model=model)
        return replace(report, written=report.written[:1])

    monkeypatch.setattr(world.graph, "write_vectors", forgetful)
    before = heartbeats()

    run_report = world.run()

    assert (run_report.embedded, run_report.released) == (1, 2)
    assert heartbeats() <= before


# -- stopped -----------------------------------------------------------------------------------


def test_all_answers_that_arrive_after_an_interrupt_are_kept_and_leases_given_back(
    build: Build,
) -> None:
    world = build(run_limits=replace(WIDE, concurrency=2))
    world.fill(12)
    interrupt = Interrupt(world)
    both = threading.Barrier(2, timeout=PATIENCE)

    def answer(texts: Sequence[str]) -> None:
        if both.wait() == 0:
            interrupt(texts)
        assert interrupt.noticed.wait(PATIENCE)

    world.provider.always = answer

    with pytest.raises(KeyboardInterrupt):
        drain(world.services, owner="worker-a", limit=2, deadline=interrupt.deadline)

    assert world.count(JobStatus.COMPLETED) == 4
    assert world.count(JobStatus.PENDING) == 8
    assert len(world.provider.requests) == 2, "no new request after the interrupt"


def test_time_that_is_up_lets_what_is_under_way_finish(build: Build) -> None:
    world = build(max_inputs=1, run_limits=replace(WIDE, drain_for=MINUTE))
    world.fill(9)
    meet = Together(3)

    def slow(texts: Sequence[str]) -> None:
        meet(texts)
        world.clock.advance(MINUTE)

    world.provider.always = slow

    report = world.run()

    assert (report.embedded, report.released, report.stop_reason) == (3, 6, StopReason.TIME_UP)


def test_lease_that_comes_in_after_the_end_is_given_back(build: Build, world: World) -> None:
    world.fill(4)
    lease = lease_batch(world.services, owner="worker-a", limit=2)
    deadline = Deadline(world.clock, limit=None)
    deadline.stop()

    report = drain(world.services, owner="worker-a", first=lease, deadline=deadline)

    assert (report.released, report.stop_reason) == (2, StopReason.STOPPED)
    assert world.count(JobStatus.PENDING) == 4


def test_lease_that_comes_after_the_grace_is_given_back_and_extended_no_longer(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = build(run_limits=replace(WIDE, grace=10 * MILLISECOND))
    world.fill(4)
    interrupt, over = Interrupt(world), threading.Event()
    read, released = world.graph.read_entities, threading.Event()
    release = world.jobs.release

    def slow_read(uids: Sequence[EntityUid]) -> Mapping[EntityUid, Entity]:
        interrupt(())
        over.wait(PATIENCE)
        return read(uids)

    def watched(lease: Lease, job_ids: Sequence[JobId]) -> int:
        count = release(lease, job_ids)
        released.set()
        return count

    monkeypatch.setattr(world.graph, "read_entities", slow_read)
    monkeypatch.setattr(world.jobs, "release", watched)

    with pytest.raises(KeyboardInterrupt):
        drain(world.services, owner="worker-a", deadline=interrupt.deadline)
    over.set()

    assert released.wait(PATIENCE)
    assert world.count(JobStatus.PENDING) == 4


def _must(came: bool) -> None:
    assert came
