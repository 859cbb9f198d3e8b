"""How long the databases are waited for: shortly in a tick, patiently in a run."""

from __future__ import annotations

import dagster as dg
import pytest

from embed_pipeline import wiring
from embed_pipeline.settings import Settings
from embed_pipeline.stores.config import Queue
from embed_pipeline_tests.defs.scene import Pipeline

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def hurries(monkeypatch: pytest.MonkeyPatch, pipeline: Pipeline) -> list[bool]:
    """How each queue was asked for from here on."""
    asked: list[bool] = []
    open_queue = wiring.open_queue

    def noted(settings: Settings, *, fail_fast: bool = False) -> Queue:
        asked.append(fail_fast)
        return open_queue(settings, fail_fast=fail_fast)

    monkeypatch.setattr(wiring, "open_queue", noted)
    pipeline.rebuild()
    return asked


def test_look_of_a_sensor_waits_shortly_for_a_server(
    pipeline: Pipeline, instance: dg.DagsterInstance, hurries: list[bool]
) -> None:
    with pipeline.tick("embed_queue_sensor", instance):
        pass

    assert hurries == [True], "jobs and budget share one queue"


def test_run_has_the_patience_that_its_work_is_worth(
    pipeline: Pipeline, hurries: list[bool]
) -> None:
    pipeline.run("embed_job")

    assert hurries == [False], "jobs and budget share one queue"
