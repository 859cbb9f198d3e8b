"""The component: its attributes, its schema, two of them side by side, and the example project."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]
from dagster.components.core.package_entry import get_package_objects_in_module
from dagster.components.resolved.errors import ResolutionException
from dagster.components.scaffold.scaffold import NoParams

import embed_pipeline
from embed_pipeline.defs.build import build_definitions
from embed_pipeline.defs.library.component import (
    ATTRIBUTES,
    EmbedPipelineComponent,
    EmbedPipelineScaffolder,
)
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings.load import DECLARED
from embed_pipeline_tests.defs.commands import ROOT
from embed_pipeline_tests.defs.scene import settings_in

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    # of Dagster, where it reads YAML
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20"),
]

PROJECT = ROOT / "examples" / "dg_project"


def defs_of(home: Path, **attributes: Any) -> dg.Definitions:
    settings = {"EMBED_ENV": "test", "EMBED_HOME": str(home)} | attributes.pop("settings", {})
    text = yaml.safe_dump({"settings": settings} | attributes)
    component: EmbedPipelineComponent = EmbedPipelineComponent.resolve_from_yaml(text)
    return component.build_defs(dg.ComponentTree.for_test().load_context)


def crons(defs: dg.Definitions) -> dict[str, object]:
    repository = defs.get_repository_def()
    return {schedule.name: schedule.cron_schedule for schedule in repository.schedule_defs}


def test_name_deps_and_schedules_come_from_yaml(tmp_path: Path) -> None:
    defs = defs_of(
        tmp_path,
        name="books",
        deps=["raw/books"],
        run_seconds=90,
        schedules={"observe": "0 * * * *", "prune_history": False, "audit": True},
    )

    embeddings = defs.resolve_asset_graph().get(dg.AssetKey(["books", "entity_embeddings"]))
    assert embeddings.parent_keys == {dg.AssetKey(["raw", "books"])}
    # a run gets time to arrive beside the 90 s
    assert int(defs.resolve_job_def("books_embed_job").tags["dagster/max_runtime"]) < 600
    assert crons(defs) == {
        "books_audit_schedule": "*/5 * * * *",
        "books_cleanup_ttl_schedule": "0 3 * * *",
        "books_daily_report_schedule": "0 6 * * *",
        "books_discover_schedule": "*/15 * * * *",
        "books_observe_schedule": "0 * * * *",
    }


def test_settings_win_over_the_environment_and_fill_in_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBED_MAX_RUNS", "7")
    monkeypatch.setenv("BOOKS_KEY", "sk-of-the-books")
    text = 'settings: {EMBED_MAX_RUNS: 3, OPENAI_API_KEY: "{{ env.BOOKS_KEY }}"}'

    component = EmbedPipelineComponent.resolve_from_yaml(text)

    assert component.settings == {"EMBED_MAX_RUNS": 3, "OPENAI_API_KEY": "sk-of-the-books"}
    assert "sk-of-the-books" not in repr(component)
    with pytest.raises(ConfigurationError, match=r"EMBED_MAX_RUNS must be .*, got '300'"):
        defs_of(tmp_path, settings={"EMBED_MAX_RUNS": 300})


@pytest.mark.parametrize(
    "attributes",
    [
        {"settings": {"EMBED_HOM": "/data"}},
        {"schedules": {"obsrve": False}},
        {"colour": "green"},
        *({"settings": {variable: "1"}} for variable in ATTRIBUTES.values()),
    ],
)
def test_unknown_names_are_refused_by_the_schema(attributes: dict[str, Any]) -> None:
    with pytest.raises((ValueError, ResolutionException)):
        EmbedPipelineComponent.resolve_from_yaml(yaml.safe_dump(attributes))


def test_every_setting_has_a_description_in_the_schema() -> None:
    schema = EmbedPipelineComponent.model().model_json_schema()
    described = {
        name
        for name, field in schema["$defs"]["PipelineSettings"]["properties"].items()
        if field["description"]
    }

    assert described == DECLARED.keys() - set(ATTRIBUTES.values())


def test_unknown_schedules_of_python_are_refused_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no schedule 'obsrve'; there are audit, "):
        build_definitions(settings_in(tmp_path), schedules={"obsrve": False})


def test_two_components_fit_into_one_code_location(tmp_path: Path) -> None:
    merged = dg.Definitions.merge(
        defs_of(tmp_path / "a", name="books"), defs_of(tmp_path / "b", name="films")
    )

    jobs = {job.name for job in merged.get_repository_def().get_all_jobs()}
    assert {"books_embed_job", "films_embed_job"} <= jobs


def test_dg_finds_the_component_and_scaffolds_it_with_its_folders_name(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (registered,) = project["entry-points"]["dagster_dg_cli.registry_modules"].values()
    request = dg.ScaffoldRequest(
        type_name="embed_pipeline.EmbedPipelineComponent",
        target_path=tmp_path,
        scaffold_format="yaml",
        project_root=None,
        params=NoParams(),
    )

    EmbedPipelineScaffolder().scaffold(request)

    assert dict(get_package_objects_in_module(import_module(registered))) == {
        "EmbedPipelineComponent": embed_pipeline.EmbedPipelineComponent
    }
    assert yaml.safe_load((tmp_path / "defs.yaml").read_text()) == {
        "type": "embed_pipeline.EmbedPipelineComponent",
        "attributes": {"name": tmp_path.name},
    }


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.Definitions]:
    monkeypatch.setenv("EMBED_HOME", str(tmp_path))
    monkeypatch.chdir(PROJECT)
    monkeypatch.syspath_prepend(str(PROJECT))
    yield dg.load_from_defs_folder(path_within_project=PROJECT / "kitchen")
    for name in [name for name in sys.modules if name.partition(".")[0] == "kitchen"]:
        del sys.modules[name]


def test_the_example_project_loads_embeds_and_uses_the_vectors(
    example: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    repository = example.get_repository_def()
    everything = repository.get_implicit_global_asset_job_def()

    def materialize(*keys: str) -> dg.ExecuteInProcessResult:
        chosen = [dg.AssetKey(key) for key in keys]
        return everything.execute_in_process(asset_selection=chosen, instance=instance)

    loaded = materialize("recipes")
    embedded = repository.get_job("kitchen_embed_job").execute_in_process(instance=instance)
    used = materialize("most_alike", "cold_evening")

    (recipes,) = loaded.asset_materializations_for_node("recipes")
    (alike,) = used.asset_materializations_for_node("most_alike")
    (evening,) = used.asset_materializations_for_node("cold_evening")
    assert recipes.metadata["new jobs"].value == embedded.output_for_node("embed_batch") == 6
    assert alike.metadata["pair"].value == "Gazpacho and Cucumber salad"
    assert str(evening.metadata["hits"].value).count("\n") == 2
