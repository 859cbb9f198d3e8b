"""Whatever mixture of faults a server injects: every job ends truly and every vector is right."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from embed_pipeline.model.job import JobStatus
from embed_pipeline.worker.loop import run_until_empty
from embed_pipeline.worker.tools import Plan
from embed_pipeline_tests.clocks import HOUR, MINUTE, FakeClock
from embed_pipeline_tests.openai_faults import (
    DROP,
    NAN_ROW,
    SWAPPED_ROWS,
    Fault,
    credentials_refused,
    html_page,
    rate_limited,
    refusal,
    server_error,
)
from embed_pipeline_tests.openai_server import OpenAIServer
from embed_pipeline_tests.worker.openai_scene import OpenAIWorld, running_server, server
from embed_pipeline_tests.worker.scene import entity, uid

__all__ = ["running_server", "server"]

ENTITIES = 60
POISON = "poison"
FAULTS: Sequence[Fault] = (
    rate_limited({"Retry-After": "2"}),
    rate_limited(),
    server_error(),
    DROP,
    html_page(),
    NAN_ROW,
    SWAPPED_ROWS,
    credentials_refused(),
)
WIDE = Plan(batch_size=16, concurrency=3, writers=2, ahead=1, write_size=5, drain_for=MINUTE)


class Weather:
    """Faults by chance, for a while; a poisonous text is refused whatever the weather."""

    def __init__(self, seed: int) -> None:
        self._chance, self._lock = random.Random(seed), threading.Lock()
        self.is_bad = True

    def __call__(self, texts: Sequence[str]) -> Fault | None:
        is_poisonous = any(POISON in text for text in texts)
        with self._lock:
            fault = self._chance.choice(FAULTS) if self._chance.random() < 0.4 else None
        if fault is None or not self.is_bad or (is_poisonous and fault is SWAPPED_ROWS):
            return refusal(400) if is_poisonous else None
        return fault


@pytest.mark.parametrize("seed", range(12))
def test_whatever_faults_are_mixed_every_job_ends_truly_and_every_vector_is_right(
    tmp_path: Path, clock: FakeClock, server: OpenAIServer, seed: int
) -> None:
    world = OpenAIWorld(tmp_path, clock, server, max_inputs=16, plan=WIDE)
    weather = Weather(seed)
    server.fault_for = weather
    poisonous = {seed % ENTITIES, (7 * seed + 3) % ENTITIES}
    world.create(*(entity(n, POISON if n in poisonous else f"note {n}") for n in range(ENTITIES)))

    for _ in range(15):
        work(world)
        check_what_holds_at_any_time(world, poisonous)
        world.jobs.switch.resume("a person")
        clock.advance(MINUTE)
    weather.is_bad = False
    for _ in range(5):
        clock.advance(HOUR)
        work(world)

    check_what_holds_at_any_time(world, poisonous)
    for number in range(ENTITIES):
        job = world.job_of(uid(number))
        assert job.status is (JobStatus.FAILED if number in poisonous else JobStatus.COMPLETED), (
            f"seed {seed}: {job}"
        )
    world.close()


def work(world: OpenAIWorld) -> None:
    pace = world.pace(MINUTE)
    run_until_empty(world.tools, owner="cli", recovery_interval=MINUTE, pace=pace)


def check_what_holds_at_any_time(world: OpenAIWorld, poisonous: set[int]) -> None:
    jobs = world.all_jobs
    assert len(jobs) == ENTITIES, "no entity is lost"
    for job in jobs:
        assert job.status is not JobStatus.PROCESSING, "nobody holds a job after a run"
        if job.status is JobStatus.COMPLETED:
            assert world.is_embedded(job.entity_uid)
        if job.status is JobStatus.FAILED:
            number = int(job.entity_uid.removeprefix("e"))
            assert number in poisonous, f"an innocent failed: {job}"
            assert job.error
            assert job.error_category is not None
