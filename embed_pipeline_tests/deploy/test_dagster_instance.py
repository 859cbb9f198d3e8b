"""Dagster accepts the production instance; its storage is tried in test_postgres_storage.py."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]

from embed_pipeline.defs.pipeline import LANES
from embed_pipeline_tests.defs.commands import DAGSTER, Homes, dagster
from embed_pipeline_tests.defs.dev_server import free_port, within
from embed_pipeline_tests.deploy.files import ROOT, read_yaml

ONLY_IN_PRODUCTION = {"storage", "compute_logs"}


def on_a_laptop() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "dagster.yaml").read_text()))


def test_production_differs_from_a_laptop_in_storage_only() -> None:
    production = read_yaml("dagster.yaml")

    assert production.keys() - on_a_laptop().keys() == ONLY_IN_PRODUCTION
    assert {name: value for name, value in production.items() if name in on_a_laptop()} == (
        on_a_laptop()
    )


def test_dagster_accepts_everything_but_the_storage_here(tmp_path: Path) -> None:
    config = read_yaml("dagster.yaml")
    del config["storage"]
    config["compute_logs"]["config"]["base_dir"] = str(tmp_path / "logs")
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(config))

    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        limits = instance.get_concurrency_config().run_queue_config
        assert limits is not None
        assert limits.max_concurrent_runs == config["concurrency"]["runs"]["max_concurrent_runs"]
        lanes = [limit["value"] for limit in limits.tag_concurrency_limits]
        assert {lane for lane in lanes if isinstance(lane, str)} == set(LANES) - {"control"}
        assert {"applyLimitPerUniqueValue": True} in lanes
        assert instance.run_monitoring_enabled
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled


def test_storage_names_its_driver_and_takes_secrets_from_the_environment() -> None:
    database = read_yaml("dagster.yaml")["storage"]["postgres"]["postgres_db"]

    assert database.keys() == {"hostname", "username", "password", "db_name", "port", "scheme"}
    assert database["scheme"] == "postgresql+psycopg2"
    assert database["password"] == {"env": "DAGSTER_POSTGRES_PASSWORD"}


def test_variables_of_the_storage_are_given_by_compose() -> None:
    database = read_yaml("dagster.yaml")["storage"]["postgres"]["postgres_db"]
    asked = {value["env"] for value in database.values() if isinstance(value, dict)}

    for name in ("code", "webserver", "daemon"):
        assert asked <= read_yaml("compose.yaml")["services"][name]["environment"].keys()


@pytest.mark.slow
def test_code_server_of_compose_serves_the_workspace(tmp_path: Path) -> None:
    """The very command and workspace, on a free port of this machine."""
    homes, port = Homes.below(tmp_path), str(free_port())
    command = ["127.0.0.1" if word == "0.0.0.0" else word for word in _code_command()]
    command = [port if word == "4000" else word for word in command]
    workspace = tmp_path / "workspace.yaml"
    workspace.write_text(yaml.safe_dump(_workspace_at("127.0.0.1", int(port))))

    with subprocess.Popen(
        [DAGSTER, *command[1:]],
        env=homes.environment(EMBED_ENV="test"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            health = ("api", "grpc-health-check", "--port", port)
            within(60, lambda: dagster(*health, homes=homes).returncode == 0)
            valid = dagster("definitions", "validate", "-w", str(workspace), homes=homes)
        finally:
            server.kill()  # started from a background, Dagster ignores a politer signal

    assert valid.returncode == 0, valid.stdout
    assert "embed_pipeline" in valid.stdout


def test_workspace_names_the_code_server_of_compose() -> None:
    command = _code_command()

    assert read_yaml("workspace.yaml") == _workspace_at(
        "code", int(command[command.index("--port") + 1])
    )


@pytest.mark.parametrize("name", ["code", "webserver"])
def test_run_logs_are_shared_by_who_writes_and_who_shows_them(name: str) -> None:
    folder = read_yaml("dagster.yaml")["compute_logs"]["config"]["base_dir"]

    assert read_yaml("compose.yaml")["services"][name]["volumes"] == [f"run-logs:{folder}"]


def _code_command() -> list[str]:
    return list(read_yaml("compose.yaml")["services"]["code"]["command"])


def _workspace_at(host: str, port: int) -> dict[str, Any]:
    server = {"host": host, "port": port, "location_name": "embed_pipeline"}
    return {"load_from": [{"grpc_server": server}]}
