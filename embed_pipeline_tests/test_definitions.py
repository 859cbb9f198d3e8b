"""What Dagster sees: names, cadence, statuses, and never a secret."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]
from dagster._core.definitions.repository_definition import RepositoryDefinition
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.defs.pipeline import LANES
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.defs.commands import ROOT
from embed_pipeline_tests.defs.scene import add_run
from embed_pipeline_tests.settings.environments import PRODUCTION

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")

JOBS = {
    "embed_job",
    "recover_stale_job",
    "audit_job",
    "cleanup_ttl_job",
    "discover_job",
    "force_embedding_job",
    "retry_failed_job",
    "pause_job",
    "resume_job",
    "observe_job",
    "daily_report_job",
    "prune_history_job",
}
OPS = {
    "recover_stale",
    "lease_batch",
    "embed_batch",
    "cleanup_ttl",
    "discover_missing_embeddings",
}
AUTOMATIC = {
    "embed_queue_sensor",
    "recover_stale_sensor",
    "recover_failed_run",
    "recover_canceled_run",
    "cleanup_ttl_schedule",
    "audit_schedule",
    "discover_schedule",
    "discover_sensor",
    "observe_schedule",
    "prune_history_schedule",
    "daily_report_schedule",
}


def definitions(home: Path, environment: str = "test", **variables: str) -> dg.Definitions:
    start = PRODUCTION if environment == "production" else {}
    variables = {"EMBED_ENV": environment, "EMBED_HOME": str(home)} | variables
    return build_definitions(load_settings({**start, **variables}))


def repository(built: dg.Definitions) -> RepositoryDefinition:
    return built.get_repository_def()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> RepositoryDefinition:
    """Built once, because no test changes it."""
    return repository(definitions(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """On disk: a schedule opens its instance by a reference, which one in memory does not have."""
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as instance:
        yield instance


def test_the_five_ops_and_the_jobs_exist_by_their_exact_names(built: RepositoryDefinition) -> None:
    jobs = [built.get_job(name) for name in JOBS]

    assert {name for name in built.job_names if not name.startswith("__")} >= JOBS
    assert {op.name for job in jobs for op in job.all_node_defs} >= OPS


def test_embed_job_recovers_before_it_leases_and_leases_before_it_embeds(
    built: RepositoryDefinition,
) -> None:
    job = built.get_job("embed_job")

    assert [node.name for node in job.nodes_in_topological_order] == [
        "recover_stale",
        "lease_batch",
        "embed_batch",
    ]


@pytest.mark.parametrize("name", sorted(JOBS))
def test_every_job_runs_in_one_process_and_ends_in_time(
    built: RepositoryDefinition, name: str
) -> None:
    job = built.get_job(name)

    assert job.executor_def.name == "in_process"
    assert int(job.tags["dagster/max_runtime"]) > 0
    assert job.tags["embed_pipeline/lane"]
    assert job.description


def test_definitions_load_without_opening_anything(tmp_path: Path) -> None:
    home = tmp_path / "home"

    dg.Definitions.validate_loadable(definitions(home))

    assert not home.exists()


@pytest.mark.parametrize(
    ("environment", "running"), [("local", True), ("production", True), ("test", False)]
)
def test_sensors_and_schedules_run_by_themselves_except_in_tests(
    tmp_path: Path, environment: str, running: bool
) -> None:
    built = repository(definitions(tmp_path, environment))

    states = {sensor.name: sensor.default_status.value for sensor in built.sensor_defs}
    states |= {schedule.name: schedule.default_status.value for schedule in built.schedule_defs}

    assert states.keys() == AUTOMATIC
    assert set(states.values()) == {"RUNNING" if running else "STOPPED"}


@pytest.mark.parametrize(
    ("name", "cron", "job"),
    [
        ("cleanup_ttl_schedule", "0 3 * * *", "cleanup_ttl_job"),
        ("observe_schedule", "*/5 * * * *", "observe_job"),
        ("prune_history_schedule", "30 3 * * *", "prune_history_job"),
        ("daily_report_schedule", "0 6 * * *", "daily_report_job"),
    ],
)
def test_schedules_come_by_the_clock_but_pile_up_no_runs(
    built: RepositoryDefinition, instance: dg.DagsterInstance, name: str, cron: str, job: str
) -> None:
    schedule = built.get_schedule_def(name)

    with dg.build_schedule_context(instance=instance, repository_def=built) as context:
        first = schedule.evaluate_tick(context)
        tags = built.get_job(job).tags
        add_run(instance, dg.DagsterRunStatus.QUEUED, job=job, tags=tags)
        second = schedule.evaluate_tick(context)

    assert (schedule.cron_schedule, schedule.job_name) == (cron, job)
    assert len(first.run_requests or []) == 1
    assert not second.run_requests
    assert second.skip_message == f"the previous run of {job} is still queued or running"


@pytest.mark.parametrize("name", sorted(JOBS))
def test_every_field_of_the_launchpad_is_described_and_has_a_default(
    built: RepositoryDefinition, name: str
) -> None:
    job = built.get_job(name)

    fields = [
        (f"{op.name}.{field}", declared)
        for op in job.all_node_defs
        if isinstance(op, dg.OpDefinition) and op.config_schema.config_type
        for field, declared in getattr(op.config_schema.config_type, "fields", {}).items()
    ]

    assert fields
    assert [field for field, declared in fields if not declared.description] == []
    assert [field for field, declared in fields if declared.is_required] == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_example_of_a_run_config_fits_the_job_it_names(
    built: RepositoryDefinition, path: Path
) -> None:
    (name,) = re.findall(r"-j (\w+) -c config/" + path.name, path.read_text())
    job = built.get_job(name)

    assert dg.validate_run_config(job, yaml.safe_load(path.read_text()))


def test_every_lane_is_bounded_or_left_to_people_on_purpose() -> None:
    instance = yaml.safe_load((ROOT / "dagster.yaml").read_text())

    limits = instance["concurrency"]["runs"]["tag_concurrency_limits"]

    values = [limit["value"] for limit in limits]
    assert {value for value in values if isinstance(value, str)} | {"control"} == set(LANES)
    assert {"applyLimitPerUniqueValue": True} in values  # the lanes of named pipelines


def test_assets_and_their_checks_are_there(built: RepositoryDefinition) -> None:
    graph = built.asset_graph

    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
        "entity_embeddings",
        "embedding_queue",
        "embedding_report",
    }
    assert {(key.asset_key.to_user_string(), key.name) for key in graph.asset_check_keys} == {
        ("entity_embeddings", "coverage"),
        ("embedding_queue", "nothing_stuck"),
        ("embedding_queue", "health"),
        ("embedding_queue", "failed_jobs"),
    }


def test_sensors_ask_for_less_than_the_daemons_loop_to_get_it(built: RepositoryDefinition) -> None:
    """Asking for its 5 seconds would often miss a round."""
    sensors = built.sensor_defs

    assert {sensor.minimum_interval_seconds for sensor in sensors} == {4}


@dg.op
def their_op() -> None:
    """Somebody else's."""


@dg.job
def their_job() -> None:
    their_op()


@pytest.mark.parametrize("executor", [None, dg.multiprocess_executor])
def test_definitions_can_be_merged_into_somebody_elses(
    tmp_path: Path, executor: dg.ExecutorDefinition | None
) -> None:
    theirs = dg.Definitions(jobs=[their_job], executor=executor, resources={"warehouse": 1})

    merged = dg.Definitions.merge(definitions(tmp_path), theirs)

    built = repository(merged)
    assert {*JOBS, "their_job"} <= set(built.job_names)
    assert built.get_job("embed_job").executor_def.name == "in_process"
    assert built.get_job("embed_job").execute_in_process().success


# Dagster reads its own deprecated property while it takes the snapshot.
@pytest.mark.filterwarnings("ignore:Property `ScheduleDefinition.env:DeprecationWarning")
@pytest.mark.parametrize("environment", ["local", "production"])
def test_no_secret_enters_what_dagster_stores_and_shows(tmp_path: Path, environment: str) -> None:
    key, queue_password, graph_password = (secrets.token_hex(16) for _ in range(3))
    built = definitions(
        tmp_path,
        environment,
        EMBEDDING_PROVIDER="openai",
        OPENAI_API_KEY=key,
        EMBED_QUEUE_PASSWORD=queue_password,
        EMBED_GRAPH_PASSWORD=graph_password,
    )

    snapshot = serialize_value(RepositorySnap.from_def(repository(built)))

    assert "embedding_provider" in snapshot
    assert json.loads(snapshot)
    for secret in (key, queue_password, graph_password):
        assert secret not in snapshot


def test_resources_say_what_stands_behind_them(tmp_path: Path) -> None:
    resources = definitions(tmp_path, "production").resources or {}

    assert resources["embedding_provider"].description == "openai: text-embedding-3-small."
    assert resources["job_store"].description == "The queue of embedding jobs, on neo4j."
