"""What can be known of the images without building them."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from docs.generate.configuration import reference
from embed_pipeline.defs.build import build_definitions
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings import load_settings
from embed_pipeline_tests.deploy.files import DEPLOY, ROOT, read_yaml

OF_OTHERS = ("NEO4J_", "POSTGRES_", "DAGSTER_POSTGRES_")
ASKED_FOR = re.compile(r"\$\{(\w+)(:\?)?[^}]*\}")
PIPELINE = ("init", "code", "metrics")
"""The services that touch queue, graph or provider."""


def services() -> dict[str, Any]:
    return dict(read_yaml("compose.yaml")["services"])


def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text()


def filled_in(environment: dict[str, str]) -> dict[str, str]:
    """As compose would pass it on, with an answer for everything it asks for."""
    answers = {"EMBED_JOB_RETENTION_DAYS": "14", "OPENAI_API_KEY": "sk-of-a-test"}
    return {
        name: ASKED_FOR.sub(lambda asked: answers.get(asked[1], "eight letters"), value)
        for name, value in environment.items()
    }


def test_all_parts_of_production_are_there() -> None:
    assert services().keys() == {
        "queue",
        "graph",
        "postgres",
        "init",
        "code",
        "webserver",
        "daemon",
        "metrics",
    }


@pytest.mark.parametrize("service", PIPELINE)
def test_every_variable_in_compose_is_documented(service: str) -> None:
    documented = {row.variable for row in reference()}
    ours = {name for name in services()[service]["environment"] if not name.startswith(OF_OTHERS)}

    assert ours
    assert ours <= documented


@pytest.mark.parametrize("service", PIPELINE)
def test_settings_of_compose_are_accepted(service: str) -> None:
    settings = load_settings(filled_in(services()[service]["environment"]))

    assert settings.stores.queue_server is not None
    assert settings.stores.graph_server is not None
    assert (settings.stores.queue_server.uri, settings.stores.graph_server.uri) == (
        "bolt://queue:7687",
        "bolt://graph:7687",
    )


def test_every_port_is_bound_to_loopback() -> None:
    ports = [port for service in services().values() for port in service.get("ports", [])]

    assert len(ports) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_secrets_come_from_the_environment_and_passwords_are_asked_for() -> None:
    secrets = re.compile(r"PASSWORD|API_KEY|AUTH")
    given = {
        (name, value)
        for service in services().values()
        for name, value in (service.get("environment") or {}).items()
        if secrets.search(name)
    }

    asked = {name: found[2] for name, value in given if (found := ASKED_FOR.search(value))}
    assert len(asked) > 5
    assert asked.keys() == {name for name, _ in given}
    assert {name for name, insists in asked.items() if not insists} == {"OPENAI_API_KEY"}


@pytest.mark.parametrize("service", PIPELINE)
def test_key_is_asked_for_by_the_settings_and_only_where_the_provider_needs_it(
    service: str,
) -> None:
    without = filled_in(services()[service]["environment"]) | {"OPENAI_API_KEY": ""}

    local = load_settings(without | {"EMBEDDING_PROVIDER": "local"})

    assert local.provider.name == "local"
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY must be set"):
        load_settings(without)


def test_only_those_who_need_them_know_the_secrets_of_the_pipeline() -> None:
    for name in ("webserver", "daemon"):
        known = services()[name]["environment"]

        assert all(variable.startswith("DAGSTER_POSTGRES_") for variable in known), name


def test_code_server_may_finish_its_runs_before_it_is_stopped() -> None:
    built = build_definitions(load_settings({"EMBED_ENV": "test"}))
    embed_job = built.resolve_job_def("embed_job")

    minutes = int(services()["code"]["stop_grace_period"].removesuffix("m"))
    assert minutes * 60 > int(embed_job.tags["dagster/max_runtime"])


def test_every_command_is_a_program_of_the_image() -> None:
    programs = {service["command"][0] for service in services().values() if "command" in service}

    assert programs == {"embed-pipeline", "dagster", "dagster-webserver", "dagster-daemon"}
    beside = Path(sys.executable).parent
    assert all(shutil.which(program, path=str(beside)) for program in programs)


def test_every_file_that_the_image_copies_exists_and_is_let_through() -> None:
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile(), re.M)
        for source in line.split()[:-1]
    ]
    let_through = re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.M)

    assert len(copied) > 5
    assert all((ROOT / source).exists() for source in copied)
    assert set(copied) == set(let_through)


def test_image_runs_as_nobody_special_and_installs_by_hash() -> None:
    last_user = re.findall(r"^USER (\w+)$", dockerfile(), re.M)[-1]

    assert last_user.isdecimal(), "Kubernetes checks runAsNonRoot only by number (DL3066)"
    assert int(last_user) > 0
    assert f"useradd --system --uid {last_user} " in dockerfile()
    assert "--require-hashes" in dockerfile()


def test_base_of_every_stage_is_pinned_by_its_digest() -> None:
    bases = set(re.findall(r"^FROM (\S+)", dockerfile(), re.M))

    assert bases == {"$BASE"}
    assert re.search(r"^ARG BASE=\S+@sha256:[0-9a-f]{64}$", dockerfile(), re.M)


def test_image_holds_the_versions_that_were_tested() -> None:
    tested, held = pinned(ROOT / "requirements.txt"), pinned(DEPLOY / "requirements.txt")

    assert "dagster-postgres" in held
    assert {"pytest", "mypy", "playwright"}.isdisjoint(held)
    assert {name: tested[name] for name in held if name in tested} == {
        name: version for name, version in held.items() if name in tested
    }


def test_every_package_of_the_image_has_a_hash() -> None:
    blocks = re.split(r"\n(?=\S)", (DEPLOY / "requirements.txt").read_text().strip())

    without = [block.split()[0] for block in blocks[1:] if "--hash=sha256:" not in block]
    assert without == []


def pinned(path: Path) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", path.read_text(), re.M)
    return dict(found)
