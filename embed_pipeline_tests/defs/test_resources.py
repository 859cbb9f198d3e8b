"""How long the databases are waited for: shortly in a tick, patiently in a run."""

from __future__ import annotations

import dagster as dg
import pytest

from embed_pipeline import wiring
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.settings import Settings
from embed_pipeline_tests.defs.scene import Pipeline

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def hurries(monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline) -> list[bool]:
    """How each job store was asked for from here on."""
    asked: list[bool] = []
    open_job_store = wiring.open_job_store

    def noted(settings: Settings, *, fail_fast: bool = False) -> JobStore:
        asked.append(fail_fast)
        return open_job_store(settings, fail_fast=fail_fast)

    monkeypatch.setattr(wiring, "open_job_store", noted)
    pipeline.rebuild()
    return asked


def test_look_of_a_sensor_waits_shortly_for_a_server(
    pipeline: Pipeline, instance: dg.DagsterInstance, hurries: list[bool]
) -> None:
    with pipeline.tick("embed_queue_sensor", instance):
        pass

    assert hurries == [True]


def test_run_has_the_patience_that_its_work_is_worth(
    pipeline: Pipeline, hurries: list[bool]
) -> None:
    pipeline.run("recover_stale_job")

    assert set(hurries) == {False}
