"""prune_history_job: Dagster's storage stays bounded, and runs of other jobs are kept."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.storage.runs.schema import RunsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage

from embed_pipeline import defs
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline_tests.defs.scene import Pipeline, add_run, metadata_of

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def age(instance: dg.DagsterInstance, run_id: str, *, days: int) -> None:
    """As if the run had ended so long ago; Dagster offers no way to say that."""
    runs = instance.run_storage
    assert isinstance(runs, SqlRunStorage)
    time = (SystemClock().now() - timedelta(days=days)).replace(tzinfo=None)
    with runs.connect() as connection:
        connection.execute(
            sa.update(RunsTable)
            .where(RunsTable.c.run_id == run_id)
            .values(update_timestamp=time, create_timestamp=time)
        )


def traces(storage: Path, run_id: str) -> list[Path]:
    return [path for path in storage.rglob("*") if run_id in path.name]


def checks_of(instance: dg.DagsterInstance, run_id: str) -> list[Any]:
    key = dg.AssetCheckKey(dg.AssetKey("embedding_queue"), "health")
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
    return [record for record in history if record.run_id == run_id]


def test_old_run_goes_with_its_events_checks_logs_and_files(
    pipeline: Pipeline, stored_instance: dg.DagsterInstance
) -> None:
    instance, storage = stored_instance, Path(stored_instance.root_directory)
    old = pipeline.run("observe_job", instance=instance).run_id
    young = pipeline.run("observe_job", instance=instance).run_id
    age(instance, old, days=15)
    before = (len(traces(storage, old)), len(checks_of(instance, old)))

    result = pipeline.run("prune_history_job", instance=instance)

    shown = metadata_of(result, "prune_history")
    assert before[0] >= 2
    assert before[1] == 1
    assert (shown["runs deleted"], shown["older than (days)"]) == (1, 14)
    assert shown["per_second"] > 0
    assert traces(storage, old) == []
    assert checks_of(instance, old) == []
    assert not instance.has_run(old)
    assert instance.has_run(young)
    assert len(traces(storage, young)) == before[0]
    assert len(checks_of(instance, young)) == 1


def test_age_is_the_configs(pipeline: Pipeline, instance: dg.DagsterInstance) -> None:
    run_id = pipeline.run("embed_job", instance=instance).run_id
    age(instance, run_id, days=3)

    kept = pipeline.run("prune_history_job", instance=instance)
    pruned = pipeline.run(
        "prune_history_job", {"prune_history": {"older_than_days": 2}}, instance=instance
    )

    assert kept.output_for_node("prune_history") == 0
    assert pruned.output_for_node("prune_history") == 1


def test_runs_of_other_jobs_and_unfinished_runs_are_left_alone(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    ours = {"embed_pipeline/lane": "embed"}
    theirs = add_run(instance, dg.DagsterRunStatus.SUCCESS, job="their_job")
    unfinished = add_run(instance, dg.DagsterRunStatus.STARTED, tags=ours)
    ended = add_run(instance, dg.DagsterRunStatus.CANCELED, tags=ours)
    for run in (theirs, unfinished, ended):
        age(instance, run.run_id, days=100)

    pipeline.run("prune_history_job", instance=instance)

    assert instance.has_run(theirs.run_id)
    assert instance.has_run(unfinished.run_id)
    assert not instance.has_run(ended.run_id)


def execute_checks(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    *keys: dg.AssetKey,
    queue: Sequence[str] = ("embedding_queue",),
) -> str:
    """As the UI does from the page of an asset, maybe with other assets; the run's id."""
    job = definitions.resolve_implicit_global_asset_job_def()
    health = dg.AssetCheckKey(dg.AssetKey(queue), "health")
    run = instance.add_run(
        dg.DagsterRun(
            job_name=job.name,
            asset_selection=frozenset(keys),
            asset_check_selection=frozenset({health}),
        )
    )
    for _ in execute_run_iterator(InMemoryJob(job), run, instance):
        pass
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.is_success
    return run.run_id


def test_runs_of_checks_from_the_page_of_an_asset_are_pruned_and_those_of_others_are_not(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    @dg.asset
    def theirs() -> None: ...

    others = dg.Definitions(assets=[theirs], executor=dg.in_process_executor)
    merged = dg.Definitions.merge(pipeline.definitions, others)
    ours = execute_checks(merged, instance)
    mixed = execute_checks(merged, instance, theirs.key)
    for run_id in (ours, mixed):
        age(instance, run_id, days=15)

    pipeline.run("prune_history_job", instance=instance)

    assert not instance.has_run(ours)
    assert instance.has_run(mixed)


def test_one_night_deletes_at_most_its_limit_and_the_next_continues(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embed_pipeline.defs.maintenance.prune_history.PAGE", 2)
    for _ in range(5):
        run = add_run(instance, dg.DagsterRunStatus.SUCCESS, tags={"embed_pipeline/lane": "embed"})
        age(instance, run.run_id, days=20)
    nights = [
        pipeline.run("prune_history_job", {"prune_history": {"most_runs": 3}}, instance=instance)
        for _ in range(3)
    ]

    assert [night.output_for_node("prune_history") for night in nights] == [3, 2, 0]


def test_a_dagster_that_keeps_its_own_history_is_left_alone_with_a_note(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster+ refuses it with this error."""
    run_id = pipeline.run("embed_job", instance=instance).run_id
    age(instance, run_id, days=15)

    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError("runs should not delete logs")

    monkeypatch.setattr(type(instance.compute_log_manager), "delete_logs", refuse)

    result = pipeline.run("prune_history_job", instance=instance)

    shown = metadata_of(result, "prune_history")
    assert shown["runs deleted"] == 0
    assert "runs should not delete logs" in shown["note"]
    assert instance.has_run(run_id)


def test_a_dagster_that_moved_its_private_modules_keeps_its_history_with_a_note(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = pipeline.run("embed_job", instance=instance).run_id
    age(instance, run_id, days=15)
    monkeypatch.setitem(sys.modules, "dagster._core.storage.event_log.schema", None)

    result = pipeline.run("prune_history_job", instance=instance)

    assert "dagster._core.storage.event_log.schema" in metadata_of(result, "prune_history")["note"]
    assert instance.has_run(run_id)


def test_no_definition_imports_a_private_module_of_dagster_when_it_is_loaded() -> None:
    """One that moves must not fail the whole code location."""
    trees = [ast.parse(path.read_text()) for path in Path(defs.__file__).parent.rglob("*.py")]
    imported = [
        node.module or ""
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
    ]

    assert [name for name in imported if name.startswith("dagster._")] == []
