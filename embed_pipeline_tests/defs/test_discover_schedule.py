"""discover_schedule: checks the graph first, and launches a run only if it may find something."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from embed_pipeline.defs.polling import SensorCheckFailed
from embed_pipeline.errors import StoreUnavailable
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline_tests.defs.scene import Pipeline

SCHEDULE = "discover_schedule"
COMPLETE = "no entity lacks a vector"

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def tick(pipeline: Pipeline, instance: dg.DagsterInstance) -> str | None:
    """Why no run is launched; None where one is."""
    schedule = pipeline.definitions.resolve_schedule_def(SCHEDULE)
    resources = dict(pipeline.definitions.resources or {})
    with dg.build_schedule_context(instance=instance, resources=resources) as context:
        ticked = schedule.evaluate_tick(context)
    assert bool(ticked.run_requests) is not bool(ticked.skip_message)
    return ticked.skip_message


def test_complete_graph_is_left_in_peace(
    pipeline: Pipeline, stored_instance: dg.DagsterInstance
) -> None:
    pipeline.create("a", "b")
    queued = tick(pipeline, stored_instance)
    pipeline.run("embed_job")

    assert queued == "all 2 entities without a vector have a job"
    assert tick(pipeline, stored_instance) == COMPLETE


def test_entity_that_nobody_queued_is_worth_a_run(
    pipeline: Pipeline, stored_instance: dg.DagsterInstance
) -> None:
    pipeline.create_outside("a")

    assert tick(pipeline, stored_instance) is None
    assert pipeline.run("discover_job").success
    assert tick(pipeline, stored_instance) == "all 1 entities without a vector have a job"


def test_one_discovery_at_a_time_is_enough(
    pipeline: Pipeline, stored_instance: dg.DagsterInstance
) -> None:
    pipeline.create_outside("a")
    pipeline.add_run(stored_instance, dg.DagsterRunStatus.QUEUED, job="discover_job")

    assert (
        tick(pipeline, stored_instance)
        == "the previous run of discover_job is still queued or running"
    )


def test_it_comes_every_quarter_of_an_hour(pipeline: Pipeline) -> None:
    schedule = pipeline.definitions.resolve_schedule_def(SCHEDULE)

    assert (schedule.cron_schedule, schedule.job_name) == ("*/15 * * * *", "discover_job")


def test_graph_that_cannot_be_read_fails_the_tick_with_one_sentence(
    pipeline: Pipeline, stored_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_self: GraphEntityStore, **_asked: Any) -> Any:
        raise StoreUnavailable("The graph cannot be reached.")

    monkeypatch.setattr(GraphEntityStore, "counts", down)

    with pytest.raises(SensorCheckFailed, match=r"^The graph cannot be reached\.$"):
        tick(pipeline, stored_instance)
