"""Two code locations and two named pipelines in one instance: none notices another's trouble."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dagster as dg
import pytest
import yaml  # type: ignore[import-untyped]

from embed_pipeline import wiring
from embed_pipeline.defs.pipeline import PIPELINE, names_for
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.settings import Settings, load_settings, named
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.defs.commands import Homes
from embed_pipeline_tests.defs.dev_server import DevServer, dev_server, within

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

CODE = """
import os

import dagster as dg

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.settings import load_settings

embed = MockProvider.embed


def crash(self, texts):
    if any("crash" in text for text in texts):
        os._exit(9)  # as the kernel does where memory runs out
    return embed(self, texts)


MockProvider.embed = crash


def of(folder, name):
    return build_definitions(load_settings(over={{"EMBED_HOME": folder}}), name=name)


defs = dg.Definitions.merge({parts})
"""
NAMES = {"plain": "", "books": "books", "films": "films"}
"""By the folder of their data; the first one has no name, and a location for itself."""


class Instance:
    def __init__(self, homes: Homes, server: DevServer, pipelines: dict[str, Settings]) -> None:
        self.homes, self.server, self.pipelines = homes, server, pipelines
        self.services: dict[str, Services] = {}

    def create(self, pipeline: str, *names: str) -> None:
        services = self.services[pipeline]
        entities = [NewEntity(name=name) for name in names]
        create_entities(services.jobs, services.graph, entities, model=services.model)

    def is_embedded(self, pipeline: str) -> bool:
        services = self.services[pipeline]
        return coverage_of(services.graph, model=services.model).percent == 100

    def runs(self, pipeline: str, *statuses: dg.DagsterRunStatus) -> list[dg.DagsterRun]:
        wanted = dg.RunsFilter(
            job_name=names_for(self.pipelines[pipeline])("embed_job"), statuses=statuses or None
        )
        with dg.DagsterInstance.from_config(str(self.homes.dagster)) as instance:
            return list(instance.get_runs(wanted))

    def reasons(self, pipeline: str) -> set[str]:
        """Why the sensor of the queue launched nothing, tick by tick."""
        sensor = names_for(self.pipelines[pipeline])("embed_queue_sensor")
        with dg.DagsterInstance.from_config(str(self.homes.dagster)) as instance:
            return {
                str(tick.skip_reason)
                for state in instance.all_instigator_state()
                if state.instigator_name == sensor
                for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id)
            }

    def explain(self) -> str:
        shown = [(run.job_name, run.status.value) for name in NAMES for run in self.runs(name)]
        return f"{shown}\n{(self.homes.dagster / 'dev.log').read_text()[-2_000:]}"


@contextmanager
def two_locations(folder: Path) -> Iterator[Instance]:
    homes = Homes.below(folder)
    own = {name: named(_settings(folder / name), prefix) for name, prefix in NAMES.items()}
    locations = []
    for location, pipelines in {"plain": ["plain"], "shop": ["books", "films"]}.items():
        parts = [f"of({str(folder / name)!r}, {NAMES[name]!r})" for name in pipelines]
        file = folder / f"{location}.py"
        file.write_text(CODE.format(parts=", ".join(parts)))
        locations.append({"python_file": {"relative_path": str(file), "location_name": location}})
    workspace = folder / "workspace.yaml"
    workspace.write_text(yaml.safe_dump({"load_from": locations}))
    variables = {"EMBED_ENV": "local", "EMBEDDING_PROVIDER": "mock"}
    with ExitStack() as stack:
        server = stack.enter_context(dev_server(homes, workspace=workspace, **variables))
        instance = Instance(homes, server, own)
        for name, settings in own.items():
            wiring.initialise_stores(settings)
            instance.services[name] = wiring.open_services(settings)
            stack.callback(instance.services[name].close)
        yield instance


def _settings(home: Path) -> Settings:
    variables = {"EMBED_ENV": "local", "EMBEDDING_PROVIDER": "mock", "EMBED_HOME": str(home)}
    return load_settings(variables)


def test_crashes_and_load_of_one_pipeline_do_not_reach_the_others(tmp_path: Path) -> None:
    failed = (dg.DagsterRunStatus.FAILURE,)
    with two_locations(tmp_path) as instance:
        instance.create("films", "a film that will crash every run")
        for name in ("plain", "books"):
            instance.create(name, *(f"{name} {number}" for number in range(300)))
        within(60, lambda: all(map(instance.is_embedded, ("plain", "books"))), instance.explain)
        within(60, lambda: len(instance.runs("films", *failed)) >= 2, instance.explain)
        for name in ("plain", "books"):
            instance.create(name, f"{name} beside a neighbour in trouble")
        within(60, lambda: all(map(instance.is_embedded, ("plain", "books"))), instance.explain)

        for name in ("plain", "books"):
            tag = names_for(instance.pipelines[name]).pipeline
            runs = instance.runs(name)
            assert {run.tags[PIPELINE] for run in runs} == {tag}
            assert instance.runs(name, *failed) == []
            assert not any("failed" in reason for reason in instance.reasons(name))
        assert instance.services["films"].jobs.get_queue_status().completed == 0
