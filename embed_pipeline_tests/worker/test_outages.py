"""Outages of every shape: no innocent job fails, and everything else is embedded."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from embed_pipeline.domain.breaker import pause_at
from embed_pipeline.domain.job import JobStatus
from embed_pipeline.errors import ProviderUnavailable
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.context import RunLimits
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.run import drain
from embed_pipeline.worker.stop import StopReason
from embed_pipeline_tests.clocks import HOUR, MINUTE, SECOND, FakeClock
from embed_pipeline_tests.worker.conftest import Build
from embed_pipeline_tests.worker.parts import ScriptedProvider
from embed_pipeline_tests.worker.scene import ONE_BY_ONE, World, entity, uid

WIDE = RunLimits(concurrency=3, writers=2, ahead=1, write_size=5)


def down(_: Sequence[str]) -> None:
    raise ProviderUnavailable("503")


def work(world: World, *, for_: timedelta = HOUR) -> None:
    run_until_empty(
        world.services, owner="cli", recovery_interval=MINUTE, deadline=world.deadline(for_)
    )


def most_probes(outage: timedelta) -> int:
    """One request that meets the outage, then a probe after each doubling pause."""
    probes, passed = 1, timedelta(0)
    while passed <= outage:
        passed += pause_at(probes)
        probes += 1
    return probes


@settings(max_examples=25)
@given(
    outage=st.integers(1, 900).map(lambda seconds: timedelta(seconds=seconds)),
    inputs=st.sampled_from([3, 10, 100]),
    run_limits=st.sampled_from([ONE_BY_ONE, WIDE]),
)
def test_outage_of_any_length_fails_no_job_and_is_probed_no_more_than_the_pauses_allow(
    outage: timedelta, inputs: int, run_limits: RunLimits
) -> None:
    with tempfile.TemporaryDirectory() as home:
        clock = FakeClock()
        world = World(Path(home), clock, max_inputs=inputs, run_limits=run_limits)
        world.fill(30)
        ends = clock.now() + outage
        met: list[Sequence[str]] = []

        def answer(texts: Sequence[str]) -> None:
            if clock.now() < ends:
                met.append(texts)
                down(texts)

        world.provider.always = answer

        work(world)

        assert all(world.is_embedded(uid(number)) for number in range(30))
        assert {job.attempts for job in world.all_jobs} == {0}
        assert len(met) <= most_probes(outage) + run_limits.concurrency - 1
        world.close()


def test_several_workers_together_probe_no_more_than_the_pauses_allow(build: Build) -> None:
    workers = [build(max_inputs=10) for _ in range(3)]
    first = workers[0]
    first.fill(30)
    outage = 5 * MINUTE
    met: list[Sequence[str]] = []

    def answer(texts: Sequence[str]) -> None:
        met.append(texts)
        down(texts)

    for worker in workers:
        worker.provider.always = answer

    for _ in range(2 * int(outage.total_seconds())):
        for number, worker in enumerate(workers):
            worker.run(owner=f"worker-{number}")
        first.clock.advance(SECOND / 2)

    assert len(met) <= most_probes(outage)
    assert {(job.status, job.attempts) for job in first.all_jobs} == {(JobStatus.PENDING, 0)}
    for worker in workers:
        worker.provider.always = None
    first.clock.advance(MINUTE)
    work(first)
    assert all(first.is_embedded(uid(number)) for number in range(30))


def test_lone_requests_that_fail_together_are_one_outage_and_charge_one(build: Build) -> None:
    world = build(max_inputs=1, run_limits=WIDE)
    world.fill(9)
    world.provider.always = down

    work(world)

    assert sorted(job.attempts for job in world.all_jobs) == [0] * 8 + [1]
    assert world.count(JobStatus.PENDING) == 9


def test_provider_that_fails_only_big_requests_embeds_everything_in_small_ones(
    build: Build,
) -> None:
    world = build(run_limits=WIDE)
    world.fill(60)

    def too_much(texts: Sequence[str]) -> None:
        if len(texts) > 16:
            raise ProviderUnavailable("502")

    world.provider.always = too_much

    work(world)

    assert world.count(JobStatus.COMPLETED) == 60
    assert {job.attempts for job in world.all_jobs} == {0}


def test_prober_that_dies_blocks_no_other_worker(build: Build) -> None:
    world, other = build(), build()
    world.fill(5)
    world.provider.script.append(ProviderUnavailable("503"))
    world.run()
    world.clock.advance(SECOND)
    probe = world.lease(owner="dies", token="probe")
    assert (probe.probe, len(probe.jobs)) == (True, 1)

    blocked = drain(other.services, owner="worker-b")
    world.clock.advance(MINUTE)
    drain(other.services, owner="worker-b")

    assert blocked.stop_reason is StopReason.REFUSED
    assert world.count(JobStatus.COMPLETED) == 4, "all but the one that the dead prober holds"


class OtherProvider(ScriptedProvider):
    name = "other"


def test_one_provider_that_is_down_does_not_stop_another(build: Build, tmp_path: Path) -> None:
    world = build()
    world.fill(5)
    world.provider.always = down
    other = OtherProvider()
    graph = World(tmp_path / "elsewhere", world.clock).graph
    services = replace(world.services, provider=other, graph=graph)
    create_entities(
        world.jobs, graph, [entity(number) for number in range(50, 55)], model=other.model
    )
    world.run()

    report = drain(services, owner="worker-b")

    assert world.jobs.breakers.read("mock").is_open
    assert (report.embedded, report.stop_reason) == (5, StopReason.QUEUE_EMPTY)
    assert {job.status for job in world.all_jobs if job.model != other.model} == {JobStatus.PENDING}
