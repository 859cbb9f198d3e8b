"""The reaper's part of the Dagster definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.defs.reaper import STUCK_JOBS
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.reaper.scene import Scene

# Dagster passes beta parameters of its own from one of its functions to the next.
pytestmark = pytest.mark.filterwarnings("ignore:.*is currently in beta")


@pytest.fixture
def merged(scene: Scene, tmp_path: Path) -> dg.Definitions:
    settings = load_settings(
        {
            "EMBED_ENV": "test",
            "EMBED_HOME": str(tmp_path),
            "REAPER_DATABASE_URL": scene.url,
            "REAPER_INTERVAL_SEC": "90",
        }
    )
    return build_definitions(settings)


def run(defs: dg.Definitions, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = defs.resolve_job_def("reap_stuck_jobs_job")
    return job.execute_in_process(instance=instance, raise_on_error=False)


def tick(defs: dg.Definitions, instance: dg.DagsterInstance, scene: Scene) -> Any:
    sensor = defs.get_repository_def().get_sensor_def("reaper_sensor")
    resources = {"reaper": scene.reaper()}
    with dg.build_sensor_context(instance=instance, resources=resources) as context:
        return sensor.evaluate_tick(context)


def test_reaper_is_there_only_with_a_database(merged: dg.Definitions, tmp_path: Path) -> None:
    without = build_definitions(load_settings({"EMBED_ENV": "test", "EMBED_HOME": str(tmp_path)}))

    names = {job.name for job in without.get_repository_def().get_all_jobs()}
    assert merged.get_repository_def().has_sensor_def("reaper_sensor")
    assert not without.get_repository_def().has_sensor_def("reaper_sensor")
    assert "reap_stuck_jobs_job" not in names


def test_sensor_follows_the_interval(merged: dg.Definitions) -> None:
    sensor = merged.get_repository_def().get_sensor_def("reaper_sensor")

    assert sensor.minimum_interval_seconds == 89


def test_job_reaps_and_observes_the_figures(scene: Scene, merged: dg.Definitions) -> None:
    key = scene.processing()
    scene.processing("asr_jobs", attempt_count=5)

    with dg.DagsterInstance.ephemeral() as instance:
        result = run(merged, instance)
        observed = instance.fetch_observations(dg.AssetKey(STUCK_JOBS), limit=5).records

    assert result.success
    assert scene.row(key)["status"] == "queued"
    (record,) = observed
    assert record.asset_observation is not None
    figures = {name: value.value for name, value in record.asset_observation.metadata.items()}
    assert (figures["requeues"], figures["failures"]) == (1, 1)


def test_job_sweeps_what_it_can_and_then_fails_with_the_sentence(
    scene: Scene, merged: dg.Definitions
) -> None:
    key = scene.processing()
    scene.execute("DROP TABLE asr_jobs")

    with dg.DagsterInstance.ephemeral() as instance:
        result = run(merged, instance)

    assert not result.success
    assert scene.row(key)["status"] == "queued"


def test_sensor_launches_only_when_a_lease_has_ended(scene: Scene, merged: dg.Definitions) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        idle = tick(merged, instance, scene)
        scene.processing()
        due = tick(merged, instance, scene)

    assert idle.run_requests == []
    assert idle.skip_message == "no lease has expired"
    assert len(due.run_requests) == 1
