"""One run: its time, its model, and an orderly stop."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from embed_pipeline.domain.job import JobStatus
from embed_pipeline.domain.lease import RefusalReason
from embed_pipeline.errors import ModelNotActive, ProviderUnavailable
from embed_pipeline.worker.context import Services
from embed_pipeline.worker.leasing import lease_batch
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import Deadline, StopReason
from embed_pipeline_tests.clocks import MILLISECOND, MINUTE
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.logbook import Logbook
from embed_pipeline_tests.worker.parts import ScriptedProvider
from embed_pipeline_tests.worker.scene import ONE_BY_ONE, World, uid


class Interrupt:
    """Ctrl-C in the main thread while a request is under way."""

    def __init__(self, world: World) -> None:
        self.noticed = threading.Event()
        self.deadline = Deadline(world.clock, limit=None, stop=self.noticed)

    def __call__(self, _: Sequence[str]) -> None:
        """The request's step: interrupt, and answer once the worker has noticed."""
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        assert self.noticed.wait(10)


def test_answer_that_arrives_after_an_interrupt_is_written_and_the_rest_released(
    build: Build, logs: Logbook
) -> None:
    world = build(max_inputs=2)
    world.fill(6)
    interrupt = Interrupt(world)
    world.provider.script.extend([None, interrupt])

    with pytest.raises(KeyboardInterrupt):
        drain(world.services, owner="worker-a", deadline=interrupt.deadline)

    assert [world.is_embedded(uid(number)) for number in range(6)] == [True] * 4 + [False] * 2
    assert world.count(JobStatus.COMPLETED) == 4
    assert [job.status for job in world.all_jobs[4:]] == [JobStatus.PENDING] * 2
    assert len(world.provider.requests) == 2, "no new request after the interrupt"
    assert len(world.lease(owner="worker-b", token="t2").jobs) == 2, "due at once"
    assert "run.interrupted" in logs.events


def test_request_that_does_not_answer_within_the_grace_is_given_back(build: Build) -> None:
    world = build(run_limits=replace(ONE_BY_ONE, grace=10 * MILLISECOND))
    world.fill(3)
    interrupt, over = Interrupt(world), threading.Event()

    def silent(texts: Sequence[str]) -> None:
        interrupt(texts)
        over.wait(10)

    world.provider.script.append(silent)

    with pytest.raises(KeyboardInterrupt):
        drain(world.services, owner="worker-a", deadline=interrupt.deadline)
    over.set()

    assert {(job.status, job.attempts, job.strikes) for job in world.all_jobs} == {
        (JobStatus.PENDING, 0, 0)
    }


def test_error_that_arrives_after_an_interrupt_charges_no_job(build: Build) -> None:
    world = build()
    world.fill(1)
    interrupt = Interrupt(world)

    def broken(texts: Sequence[str]) -> None:
        interrupt(texts)
        raise ProviderUnavailable("500")

    world.provider.script.append(broken)

    with pytest.raises(KeyboardInterrupt):
        drain(world.services, owner="worker-a", deadline=interrupt.deadline)

    assert world.job_of(uid(0)).status is JobStatus.PENDING
    assert world.job_of(uid(0)).attempts == 0


def test_stopped_run_sends_no_further_request(build: Build) -> None:
    world = build(max_inputs=1)
    world.fill(3)
    deadline = world.deadline()
    world.provider.script.append(lambda _: deadline.stop())

    report = drain(world.services, owner="worker-a", deadline=deadline)

    assert (report.embedded, report.released, report.stop_reason) == (1, 2, StopReason.STOPPED)


def test_run_ends_when_its_time_is_up_and_gives_back_what_is_left(build: Build) -> None:
    world = build(max_inputs=1)
    world.fill(10)
    world.provider.always = lambda _: world.clock.advance(MINUTE)

    report = world.run()

    assert (report.embedded, report.released, report.stop_reason) == (4, 6, StopReason.TIME_UP)
    assert world.count(JobStatus.PROCESSING) == 0


def test_run_leases_no_further_batch_when_its_time_is_up(world: World) -> None:
    world.fill(10)
    world.provider.always = lambda _: world.clock.advance(MINUTE)

    report = world.run(limit=1)

    assert (report.leased, report.embedded, report.stop_reason) == (4, 4, StopReason.TIME_UP)


def test_run_leases_batch_after_batch(world: World) -> None:
    world.fill(7)

    report = world.run(limit=3)

    assert [len(request) for request in world.provider.requests] == [3, 3, 1]
    assert (report.embedded, report.stop_reason) == (7, StopReason.QUEUE_EMPTY)


def test_what_was_there_before_is_kept_out_of_garbage_collections_during_a_run(
    world: World,
) -> None:
    frozen: list[int] = []
    world.fill(1)
    world.provider.always = lambda _: frozen.append(gc.get_freeze_count())

    world.run()

    assert frozen[0] > 0
    assert gc.get_freeze_count() == 0


def test_two_workers_share_a_queue_and_pay_for_each_text_once(build: Build) -> None:
    one, two = build(max_inputs=3), build(max_inputs=3)
    one.fill(120)

    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(one.run, owner="worker-a", limit=10),
            pool.submit(two.run, owner="worker-b", limit=10),
        ]
    reports = [run.result() for run in runs]

    assert sum(report.embedded for report in reports) == 120
    assert len({*one.provider.texts, *two.provider.texts}) == 120
    assert len(one.provider.texts) + len(two.provider.texts) == 120
    assert all(one.is_embedded(uid(number)) for number in range(120))


def test_run_begins_with_the_lease_it_was_given(world: World) -> None:
    world.fill(3)
    first = lease_batch(world.services, owner="run-1", limit=2)

    report = drain(world.services, owner="run-1", first=first)

    assert (report.leased, report.embedded) == (3, 3)


def test_empty_queue_ends_the_run_at_once(world: World) -> None:
    report = world.run()

    assert (report.leased, report.stop_reason, report.back_at) == (0, StopReason.QUEUE_EMPTY, None)


def test_paused_queue_leases_nothing_and_says_why(world: World, logs: Logbook) -> None:
    world.fill(1)
    world.jobs.switch.pause("maintenance")

    refusal = lease_batch(world.services, owner="worker-a").refusal

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (RefusalReason.PAUSED, "maintenance")
    assert "maintenance" in logs.of("lease.refused")[0]["reason"]


def test_second_model_is_refused_with_what_to_set_back(world: World) -> None:
    world.fill(1)
    world.run()
    other = Services(
        jobs=world.jobs,
        graph=world.graph,
        provider=ScriptedProvider(model_name="other"),
        limiter=world.limiter,
        clock=world.clock,
    )

    with pytest.raises(ModelNotActive, match="EMBEDDING_DIMENSIONS back") as refused:
        drain(other, owner="worker-a")

    assert "mock/mock@8" in str(refused.value)
    assert "mock/other@8" in str(refused.value)
    assert world.jobs.switch.read().is_running


def test_error_of_the_queue_itself_ends_the_run_and_its_jobs_are_recovered_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fill(2)

    def broken(*_: object, **__: object) -> None:
        raise OSError("the queue is gone")

    with monkeypatch.context() as patch:
        patch.setattr(world.jobs, "complete", broken)
        with pytest.raises(OSError, match="the queue is gone"):
            world.run()

    assert {(job.status, job.attempts) for job in world.all_jobs} == {(JobStatus.PENDING, 0)}
    assert world.run().reused == 2, "the vectors had been written: nothing is paid again"
