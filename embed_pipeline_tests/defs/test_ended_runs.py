"""recover_failed_run and recover_canceled_run, through the daemon's own evaluation."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import TickStatus

from embed_pipeline import telemetry
from embed_pipeline.domain.job import JobId
from embed_pipeline.errors import StoreUnavailable
from embed_pipeline.stores.queue.job_store import QueueJobStore
from embed_pipeline_tests.defs.daemon import SensorDaemon, sensor_daemon
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, add_run, settings_in

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    # Dagster reads its own deprecated property while it takes the snapshot.
    pytest.mark.filterwarnings("ignore:Property `ScheduleDefinition.env:DeprecationWarning"),
]

ENDINGS = {
    "recover_failed_run": dg.DagsterInstance.report_run_failed,
    "recover_canceled_run": dg.DagsterInstance.report_run_canceled,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def daemon(home: Path, disk: dg.DagsterInstance) -> Iterator[SensorDaemon]:
    """One for all tests here. It has done a round, because sensors of this kind ignore all before.

    Loading the definitions configures the log of this process, which is undone afterwards.
    """
    variables = {"EMBED_ENV": "local", "EMBEDDING_PROVIDER": "mock", "EMBED_HOME": str(home)}
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        environment.delitem(sys.modules, "embed_pipeline.definitions", raising=False)
        with sensor_daemon(disk, "embed_pipeline.definitions") as daemon:
            daemon.round()
            yield daemon
    sys.modules.pop("embed_pipeline.definitions", None)
    logger = logging.getLogger(telemetry.LOGGER_NAME)
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(telemetry._HANDLER)


@pytest.fixture
def pipeline(home: Path, memory: dg.DagsterInstance) -> Iterator[Pipeline]:
    """On the files of the daemon; its queue is empty at the start of each test."""
    with closing(Pipeline(settings_in(home), memory)) as pipeline:
        yield pipeline
        for owner in pipeline.services.jobs.live_owners():
            pipeline.services.jobs.recover_owner(owner)
        pipeline.run("embed_job")


def run_with_jobs(
    pipeline: Pipeline, daemon: SensorDaemon, count: int
) -> tuple[dg.DagsterRun, tuple[JobId, ...]]:
    """A run that holds live leases."""
    run = add_run(daemon.instance, dg.DagsterRunStatus.STARTED, repository="__repository__")
    pipeline.create(*(f"{run.run_id} {number}" for number in range(count)))
    jobs = pipeline.services.jobs
    lease = jobs.lease(owner=run.run_id, model=MODEL, limit=count, token=run.run_id)
    return run, lease.job_ids


def log_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    return "\n".join(str(entry.message) for entry in instance.all_logs(run.run_id))


@pytest.mark.parametrize("sensor", ENDINGS)
def test_ended_run_gives_its_jobs_back_at_once_and_its_log_says_so(
    pipeline: Pipeline, daemon: SensorDaemon, sensor: str
) -> None:
    run, job_ids = run_with_jobs(pipeline, daemon, 3)

    ENDINGS[sensor](daemon.instance, run)
    daemon.round()

    recovered = [pipeline.services.jobs.get(job_id) for job_id in job_ids]
    assert pipeline.pending == 3
    assert {(job.attempts, job.recoveries) for job in recovered if job} == {(0, 1)}
    assert daemon.last_tick(sensor).status is TickStatus.SUCCESS
    assert f"{sensor}: 3 jobs of this run are pending again." in log_of(daemon.instance, run)


def test_jobs_of_other_runs_are_left_alone(pipeline: Pipeline, daemon: SensorDaemon) -> None:
    run, _ = run_with_jobs(pipeline, daemon, 1)
    run_with_jobs(pipeline, daemon, 2)

    daemon.instance.report_run_failed(run)
    daemon.round()

    status = pipeline.services.jobs.get_queue_status()
    assert (status.pending, status.processing) == (1, 2)


def test_database_outage_is_a_red_tick_with_one_sentence_and_the_next_tick_tries_again(
    pipeline: Pipeline, daemon: SensorDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_self: QueueJobStore, _owner: str) -> Any:
        raise StoreUnavailable("The queue cannot be reached.")

    run, _ = run_with_jobs(pipeline, daemon, 1)
    daemon.instance.report_run_failed(run)
    with monkeypatch.context() as broken:
        broken.setattr(QueueJobStore, "recover_owner", down)
        daemon.round()
        daemon.round()
    red = daemon.last_tick("recover_failed_run")
    held = pipeline.services.jobs.get_queue_status().processing
    daemon.round()

    assert red.status is TickStatus.FAILURE
    assert red.error is not None
    assert "SensorCheckFailed: The queue cannot be reached." in red.error.to_string()
    assert held == 1
    assert pipeline.pending == 1
    assert daemon.last_tick("recover_failed_run").status is TickStatus.SUCCESS


def test_red_tick_of_the_queue_sensor_begins_with_our_sentence(
    pipeline: Pipeline, daemon: SensorDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_self: QueueJobStore, *, model: str) -> Any:
        raise StoreUnavailable(f"The queue of {model} cannot be reached.")

    with monkeypatch.context() as broken:
        broken.setattr(QueueJobStore, "next_due", down)
        daemon.round()
    red = daemon.last_tick("embed_queue_sensor")
    daemon.round()

    assert red.error is not None
    assert (
        red.error.to_string()
        .splitlines()[0]
        .endswith("SensorCheckFailed: The queue of mock/mock@64 cannot be reached.")
    )
    assert daemon.last_tick("embed_queue_sensor").skip_reason == "nothing is pending"
