"""entity_embeddings is materialized from its page: it finds and embeds what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.defs.pipeline import LANE, PIPELINE, names_for
from embed_pipeline.errors import CredentialsRefused
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, settings_in

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

KEY = dg.AssetKey("entity_embeddings")


def materialize(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *keys: dg.AssetKey
) -> dg.DagsterRun:
    """As the UI does: a run of the job of all assets, without a tag."""
    executor = dg.Definitions(executor=dg.in_process_executor)
    job = dg.Definitions.merge(definitions, executor).resolve_implicit_global_asset_job_def()
    run = instance.add_run(dg.DagsterRun(job_name=job.name, asset_selection=frozenset(keys)))
    for _ in execute_run_iterator(InMemoryJob(job), run, instance):
        pass
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    return ended


def test_it_finds_what_nobody_queued_and_embeds_it_with_its_check(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create_outside("a", "b")
    pipeline.create("c")

    run = materialize(pipeline.definitions, instance, KEY)

    event = instance.get_latest_materialization_event(KEY)
    (check,) = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(KEY, "coverage"), limit=5
    )
    assert run.is_success
    assert coverage_of(pipeline.services.graph, model=MODEL).percent == 100
    assert event is not None
    assert event.asset_materialization is not None
    shown = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert (shown["dagster/row_count"], shown["coverage (%)"], shown["embedded"]) == (3, 100.0, 3)
    assert (shown["requests"], shown["ended because"]) == (1, "the queue is empty")
    assert check.status.value == "SUCCEEDED"


def test_its_run_has_the_lane_the_pipeline_and_the_time_limit_of_an_embed_run(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    run = materialize(pipeline.definitions, instance, KEY)

    assert run.tags[LANE] == "embed"
    assert run.tags[PIPELINE] == names_for(pipeline.settings).pipeline
    assert run.tags["dagster/max_runtime"] == "600"


def test_run_with_assets_of_others_keeps_its_tags(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset
    def theirs() -> None: ...

    ours = build_definitions(settings_in(tmp_path), deps=[theirs])
    merged = dg.Definitions.merge(ours, dg.Definitions(assets=[theirs]))

    run = materialize(merged, instance, KEY, theirs.key)

    assert run.is_success
    assert LANE not in run.tags


def test_halted_queue_fails_it_with_what_to_do(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: MockProvider, _texts: Sequence[str]) -> Embedded:
        raise CredentialsRefused("The key is refused.")

    pipeline.create("a")
    monkeypatch.setattr(MockProvider, "embed", refuse)

    run = materialize(pipeline.definitions, instance, KEY)

    events = [entry.dagster_event for entry in instance.all_logs(run.run_id)]
    (failure,) = [
        event.step_failure_data.user_failure_data
        for event in events
        if event and event.is_step_failure and event.step_key == KEY.path[0]
    ]
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert failure is not None
    assert "The queue is halted: fix the cause, then launch resume_job." in str(failure.description)
    assert instance.get_latest_materialization_event(KEY) is None
    assert pipeline.pending == 1


def test_page_knows_the_model_and_when_the_figures_are_stale(pipeline: Pipeline) -> None:
    spec = pipeline.definitions.resolve_assets_def(KEY).get_asset_spec(KEY)

    assert spec.metadata["model"] == "mock"
    assert spec.freshness_policy is not None
