"""Which runs keep sensors and schedules from launching more."""

from __future__ import annotations

import dagster as dg
import pytest

from embed_pipeline.defs.polling import UNFINISHED, is_active
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline_tests.clocks import HOUR
from embed_pipeline_tests.defs.scene import Pipeline


@pytest.mark.parametrize("status", UNFINISHED)
def test_old_run_is_taken_for_dead_unless_it_waits_in_the_run_queue(
    pipeline: Pipeline, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    observe_job = pipeline.definitions.resolve_job_def("observe_job")
    pipeline.add_run(instance, status, job="observe_job")
    now = SystemClock().now()

    young = is_active(instance, observe_job, since=now - HOUR)
    old = is_active(instance, observe_job, since=now + HOUR)

    assert young
    assert old is (status is dg.DagsterRunStatus.QUEUED)
