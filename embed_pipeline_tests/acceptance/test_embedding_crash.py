"""A real worker process, killed with -9 in mid-batch; another process finishes its jobs."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.domain.job import EmbedJob, EntityUid, JobStatus
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.acceptance.embedding_worker import (
    DIMENSIONS,
    INPUTS,
    MODEL_NAME,
    PAID,
    SILENT,
    tools_at,
)

WORKER = "embed_pipeline_tests.acceptance.embedding_worker"
ENTITIES = 4 * INPUTS


@pytest.fixture
def services(home: Path) -> Iterator[Services]:
    opened = tools_at(home)
    yield opened
    opened.jobs.close()
    opened.graph.close()


def start(home: Path, owner: str, **options: int) -> subprocess.Popen[str]:
    given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", WORKER, str(home), owner, *given]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_when_silent(worker: subprocess.Popen[str]) -> None:
    assert worker.stdout is not None
    assert worker.stdout.readline().strip() == SILENT
    worker.send_signal(signal.SIGKILL)


def create(services: Services, count: int) -> list[EntityUid]:
    uids = [EntityUid(f"e{number:02}") for number in range(count)]
    entities = [NewEntity(uid=uid, name=f"entity {uid}") for uid in uids]
    create_entities(services.jobs, services.graph, entities, model=services.model)
    return uids


def all_jobs(services: Services) -> list[EmbedJob]:
    return list(services.jobs.history.walk())


def test_crashed_workers_job_is_finished_by_another(home: Path, services: Services) -> None:
    uids = create(services, ENTITIES)

    with start(home, "worker-a", silent_request=3) as killed:
        kill_when_silent(killed)
    held = [job for job in all_jobs(services) if job.status is JobStatus.PROCESSING]
    with start(home, "too-early") as too_early:
        too_early.wait(60)
    still_held = [job for job in all_jobs(services) if job.status is JobStatus.PROCESSING]
    with start(home, "worker-b", minutes_later=6) as finisher:
        finisher.wait(60)

    assert killed.returncode == -signal.SIGKILL
    assert len(held) == 2 * INPUTS, "two requests were answered, two were not"
    assert {job.lock_owner for job in still_held} == {"worker-a"}
    assert len(still_held) == len(held), "a lease that has not ended is nobody else's"
    assert (too_early.returncode, finisher.returncode) == (0, 0)
    jobs = all_jobs(services)
    assert {(job.status, job.attempts) for job in jobs} == {(JobStatus.COMPLETED, 0)}
    assert sorted({job.recoveries for job in jobs}) == [0, 1]
    assert_vectors_are_right(services, uids)


@pytest.mark.parametrize(
    ("concurrency", "ahead", "most_lost"),
    [(1, 0, 1), (1, 1, 2), (3, 1, 6)],
    ids=["one at a time", "one, and the next ahead", "three, and the next ahead"],
)
def test_crash_between_answer_and_write_costs_only_the_requests_that_were_open(
    home: Path, services: Services, concurrency: int, ahead: int, most_lost: int
) -> None:
    count = 20 * INPUTS
    uids = create(services, count)

    with start(home, "worker-a", silent_write=3, concurrency=concurrency, ahead=ahead) as killed:
        kill_when_silent(killed)
    with start(home, "worker-b", minutes_later=6) as finisher:
        finisher.wait(60)

    assert (killed.returncode, finisher.returncode) == (-signal.SIGKILL, 0)
    assert_vectors_are_right(services, uids)
    paid = (home / PAID).read_text().splitlines()
    assert count < len(paid) <= count + most_lost * INPUTS


def assert_vectors_are_right(services: Services, uids: list[EntityUid]) -> None:
    mock = MockProvider(model_name=MODEL_NAME, dimensions=DIMENSIONS)
    entities = services.graph.read_entities(uids)
    versions = [entities[uid].version for uid in uids]
    assert [*services.graph.embedded_versions(uids, model=services.model).values()] == versions
    stored = services.graph.vectors_of_versions(versions, model=services.model)
    for uid in uids:
        (expected,) = mock.embed([entities[uid].text]).vectors
        assert np.array_equal(stored[entities[uid].version].vector, expected)
