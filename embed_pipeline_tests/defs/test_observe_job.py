"""observe_job: exact numbers on the assets over time, and the checks beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest

from embed_pipeline.defs import pipeline as names
from embed_pipeline.domain.job import ENTITY_GONE, FailureRecord
from embed_pipeline.domain.partition import Coverage
from embed_pipeline.errors import (
    CredentialsRefused,
    ErrorCategory,
    ProviderUnavailable,
    StoreUnavailable,
)
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.stores.graph.entity_store import GraphEntityStore
from embed_pipeline.usecases.insight.coverage import read_queue_state
from embed_pipeline.usecases.insight.price import estimated_price
from embed_pipeline_tests.defs.conftest import Build
from embed_pipeline_tests.defs.scene import MODEL, Pipeline, metadata_of

EMBEDDING_QUEUE = dg.AssetKey(names.EMBEDDING_QUEUE)
ENTITY_EMBEDDINGS = dg.AssetKey(names.ENTITY_EMBEDDINGS)

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

REFUSED = FailureRecord(
    category=ErrorCategory.PERMANENT, error_type="InputRefused", message="The text is refused."
)
CHECKS = {
    "coverage": ENTITY_EMBEDDINGS,
    "nothing_stuck": EMBEDDING_QUEUE,
    "health": EMBEDDING_QUEUE,
    "failed_jobs": EMBEDDING_QUEUE,
}


def numbers(metadata: Any) -> dict[str, Any]:
    return {name: value.value for name, value in metadata.items()}


def observed(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[dict[str, Any]]:
    """The latest first."""
    records = instance.fetch_observations(key, limit=10).records
    return [numbers(cast("Any", record.asset_observation).metadata) for record in records]


def materialized(instance: dg.DagsterInstance) -> list[dict[str, Any]]:
    """The latest first."""
    records = instance.fetch_materializations(ENTITY_EMBEDDINGS, limit=10).records
    return [numbers(cast("Any", record.asset_materialization).metadata) for record in records]


def checks(instance: dg.DagsterInstance) -> dict[str, str]:
    """By name: green, or what it says."""
    latest = {}
    for name, asset in CHECKS.items():
        key = dg.AssetCheckKey(asset, name)
        for stored in instance.event_log_storage.get_asset_check_execution_history(key, limit=1):
            evaluation = cast("Any", stored.event).dagster_event.event_specific_data
            latest[name] = "green" if evaluation.passed else str(evaluation.description)
    return latest


def test_numbers_of_both_assets_are_stored(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a", "b")
    pipeline.run("embed_job")
    pipeline.create("c")

    pipeline.run("observe_job", instance=instance)

    (queue,), vectors = observed(instance, EMBEDDING_QUEUE), materialized(instance)[0]
    assert (queue["pending"], queue["failed"], queue["state"]) == (1, 0, "running")
    assert queue["oldest wait (seconds)"] >= 0
    assert (vectors["entities"], vectors["embedded"], vectors["missing"]) == (3, 2, 1)
    assert vectors["coverage (%)"] == pytest.approx(66.67, abs=0.01)
    assert vectors["dagster/row_count"] == 2
    assert vectors["missing for (minutes)"] >= 0
    assert set(checks(instance).values()) == {"green"}


def test_second_look_tells_what_was_done_since_and_materializes_the_vectors(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.run("observe_job", instance=instance)
    pipeline.create("a", "b", "c")
    pipeline.run("embed_job", instance=instance)

    result = pipeline.run("observe_job", instance=instance)

    latest, _ = observed(instance, EMBEDDING_QUEUE)
    materialized = instance.get_latest_materialization_event(ENTITY_EMBEDDINGS)
    assert latest["completed since the last observation"] == 3
    assert latest["completed per minute"] > 0
    assert latest["tokens since the last observation"] == latest["tokens in total"]
    assert latest["price since the last observation (USD, estimated)"] == 0
    assert materialized is not None
    assert materialized.asset_materialization is not None
    assert materialized.run_id == result.run_id
    shown = numbers(materialized.asset_materialization.metadata)
    assert shown["coverage (%)"] == 100
    assert shown["throughput (per minute)"] >= 0


def test_materialization_that_an_absent_graph_prevented_is_made_by_the_next_look(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_self: GraphEntityStore, *, model: str) -> Coverage:
        raise StoreUnavailable(f"The graph is away, with all vectors of {model}.")

    pipeline.run("observe_job", instance=instance)
    pipeline.create("a", "b")
    pipeline.run("embed_job", instance=instance)
    with monkeypatch.context() as broken:
        broken.setattr(GraphEntityStore, "counts", away)
        pipeline.run("observe_job", instance=instance, raise_on_error=False)
    before = instance.get_latest_materialization_event(ENTITY_EMBEDDINGS)

    pipeline.run("observe_job", instance=instance)
    pipeline.run("observe_job", instance=instance)

    (materialized,) = instance.fetch_materializations(ENTITY_EMBEDDINGS, limit=5).records
    assert before is None
    assert materialized.asset_materialization is not None
    shown = numbers(materialized.asset_materialization.metadata)
    assert shown["completed since the last observation"] == 2


def test_look_that_finds_no_change_materializes_nothing(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.run("observe_job", instance=instance)
    pipeline.run("observe_job", instance=instance)

    assert instance.get_latest_materialization_event(ENTITY_EMBEDDINGS) is None
    assert len(observed(instance, ENTITY_EMBEDDINGS)) == 2
    assert "coverage (%)" not in observed(instance, ENTITY_EMBEDDINGS)[0]


def test_first_run_is_on_the_page_at_once_and_later_ones_wait_for_the_observation(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    first = pipeline.run("embed_job")
    pipeline.create("b")
    pipeline.run("embed_job")
    after_runs = materialized(instance)
    pipeline.run("observe_job")

    event = instance.fetch_materializations(ENTITY_EMBEDDINGS, limit=9, ascending=True).records[0]
    assert [shown["embedded"] for shown in after_runs] == [1]
    assert event.run_id == first.run_id
    assert [shown["embedded"] for shown in materialized(instance)] == [2, 1]


def test_page_shows_the_newest_figures_also_where_no_vector_was_written(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a", "b")
    pipeline.run("embed_job")
    pipeline.run("observe_job")
    (entity,) = pipeline.services.graph.find_by_name("a")
    pipeline.services.graph.soft_delete([entity.uid])

    pipeline.run("observe_job")

    assert [shown["embedded"] for shown in materialized(instance)] == [1, 2]


def test_what_discovery_has_not_seen_is_queued_before_it_is_counted(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create_outside("a", "b")

    pipeline.run("observe_job")

    assert pipeline.pending == 2
    assert checks(instance)["coverage"] == "green"
    assert "without a job since" not in observed(instance, ENTITY_EMBEDDINGS)[0]


def test_age_of_a_gap_is_carried_on_until_it_is_closed(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    jobs = pipeline.services.jobs
    pipeline.create("a")
    lease = jobs.lease(owner="w", model=MODEL, limit=1, token="t")
    jobs.fail(lease, dict.fromkeys(lease.job_ids, REFUSED))
    pipeline.run("observe_job")
    since = observed(instance, ENTITY_EMBEDDINGS)[0]["without a job since"]
    pipeline.run("observe_job")
    pipeline.run("observe_job", {"observe": {"gap_minutes": -1}})
    red = checks(instance)["coverage"]
    later = {shown["without a job since"] for shown in observed(instance, ENTITY_EMBEDDINGS)}
    jobs.retry_failed()
    pipeline.run("embed_job")
    pipeline.run("observe_job")

    assert later == {since}
    assert red.startswith("1 entities lack a valid vector, the first since ")
    assert "without a job since" not in materialized(instance)[0]


def test_halt_turns_health_red_with_its_reason_until_resume(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: MockProvider, _texts: Sequence[str]) -> Embedded:
        raise CredentialsRefused("The key is refused.")

    pipeline.create("a")
    with monkeypatch.context() as broken:
        broken.setattr(MockProvider, "embed", refuse)
        pipeline.run("embed_job", raise_on_error=False)
    observation = pipeline.run("observe_job", instance=instance)
    halted = checks(instance)["health"]
    pipeline.run("resume_job")
    pipeline.run("embed_job")
    pipeline.run("observe_job", instance=instance)

    assert observation.success
    assert "CRITICAL: halted: The key is refused." in halted
    assert "resume_job" in halted
    assert metadata_of(observation, "observe")["health"].endswith("launch resume_job.")
    assert checks(instance)["health"] == "green"


def test_five_failures_in_a_row_degrade_with_their_count_and_a_success_ends_it(
    pipeline: Pipeline, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(_self: MockProvider, _texts: Sequence[str]) -> Embedded:
        raise ProviderUnavailable("The provider does not answer.")

    pipeline.create("a", "b")
    breakers = pipeline.services.jobs.breakers
    with monkeypatch.context() as broken:
        broken.setattr(MockProvider, "embed", down)
        for _ in range(5):
            pipeline.run("embed_job", raise_on_error=False)
            breakers.close("mock", seen=breakers.read("mock").generation)
    pipeline.run("observe_job", instance=instance)
    degraded = checks(instance)["health"]
    pipeline.services.jobs.retry_failed()
    pipeline.run("embed_job", instance=instance)
    pipeline.run("observe_job", instance=instance)

    events = pipeline.services.jobs.events.recent(limit=200)
    (warned,) = [event for event in events if event.kind == "health.degraded"]
    assert warned.facts["consecutive_failures"] == 5
    assert re.match(r"DEGRADED: \d consecutive failures", degraded)
    assert "health.recovered" in {event.kind for event in events}
    assert checks(instance)["health"] == "green"


def test_unreachable_queue_is_critical_and_fails_the_look(
    pipeline: Pipeline, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "queue.sqlite").write_bytes(b"no database at all" * 500)

    result = pipeline.run("observe_job", instance=instance, raise_on_error=False)

    assert not result.success
    assert checks(instance)["health"].startswith("CRITICAL (queue unreachable): ")


def test_unreachable_graph_is_reported_beside_the_queues_numbers(
    pipeline: Pipeline, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "graph.sqlite").write_bytes(b"no database at all" * 500)

    result = pipeline.run("observe_job", instance=instance, raise_on_error=False)

    assert not result.success
    assert len(observed(instance, EMBEDDING_QUEUE)) == 1
    assert checks(instance)["coverage"].startswith("CRITICAL (graph unreachable): ")


def test_failures_are_counted_beyond_those_that_are_shown(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    jobs = pipeline.services.jobs
    pipeline.create(*(f"entity {number}" for number in range(1_100)))
    lease = jobs.lease(owner="w", model=MODEL, limit=1_100, token="t")
    gone = replace(REFUSED, fail_code=ENTITY_GONE)
    jobs.fail(lease, dict.fromkeys(lease.job_ids[:1_050], REFUSED))
    jobs.fail(lease, dict.fromkeys(lease.job_ids[1_050:], gone))
    jobs.switch.pause("or discovery would queue those that are not gone at all")

    pipeline.run("observe_job", instance=instance)

    assert observed(instance, EMBEDDING_QUEUE)[0]["failed"] == 1_100
    assert observed(instance, EMBEDDING_QUEUE)[0]["parked"] == 1_050
    assert checks(instance)["failed_jobs"].startswith("1050 jobs have failed")
    assert len(read_queue_state(jobs, model=MODEL).failures) == 20


def test_failed_jobs_of_deleted_entities_alarm_nobody(
    pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    pipeline.create("a")
    (entity,) = pipeline.services.graph.find_by_name("a")
    pipeline.services.graph.soft_delete([entity.uid])
    pipeline.run("embed_job")

    pipeline.run("observe_job", instance=instance)

    assert observed(instance, EMBEDDING_QUEUE)[0]["failed"] == 1
    assert checks(instance)["failed_jobs"] == "green"


def execute_checks(pipeline: Pipeline, instance: dg.DagsterInstance, *names: str) -> bool:
    """As the UI does from the page of an asset; whether the run succeeded."""
    keys = [dg.AssetCheckKey(CHECKS[name], name) for name in names]
    selection = dg.AssetSelection.checks(*keys)
    checks_only = dg.Definitions.merge(
        pipeline.definitions,
        dg.Definitions(jobs=[dg.define_asset_job("only", selection=selection)]),
    )
    return checks_only.resolve_job_def("only").execute_in_process(instance=instance).success


def test_checks_can_be_executed_alone_from_the_ui(
    build: Build, instance: dg.DagsterInstance
) -> None:
    pipeline = build()
    pipeline.create("a")
    pipeline.services.jobs.switch.pause("tonight")

    assert execute_checks(pipeline, instance, "health")
    assert checks(instance) == {"health": "green"}


@pytest.mark.parametrize("database", ["queue", "graph"])
def test_checks_of_an_unreachable_database_are_red_and_say_what_to_do(
    pipeline: Pipeline, instance: dg.DagsterInstance, tmp_path: Path, database: str
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / f"{database}.sqlite").write_bytes(b"no database at all" * 500)

    assert execute_checks(pipeline, instance, "coverage", "failed_jobs")

    shown = checks(instance)
    assert shown["coverage"].startswith(f"CRITICAL ({database} unreachable): ")
    assert "Bring the database back" in shown["coverage"]
    assert (shown["failed_jobs"] == "green") is (database == "graph")


def test_health_of_a_crash_loop_names_the_latest_failed_runs(
    build: Build, instance: dg.DagsterInstance
) -> None:
    pipeline = build(EMBED_JOB_MAX_RECOVERIES="1")
    pipeline.abandon("e1")
    pipeline.services.jobs.recover_stale()
    pipeline.add_run(instance, dg.DagsterRunStatus.FAILURE)
    latest = pipeline.add_run(instance, dg.DagsterRunStatus.FAILURE)

    pipeline.run("observe_job", instance=instance)

    health = checks(instance)["health"]
    assert health.startswith("CRITICAL: every run that takes jobs dies")
    assert f"the latest failed runs of embed_job ({latest.run_id}, " in health


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("openai/text-embedding-3-small@1536", 0.02),
        ("openai/text-embedding-3-large@256", 0.13),
        ("local/l2_supercat@256", 0),
        ("mock/mock@64", 0),
        ("openai/of-your-own@64", None),
    ],
)
def test_price_is_estimated_where_it_is_known(model: str, dollars: float | None) -> None:
    assert estimated_price(model, tokens=1_000_000) == dollars
