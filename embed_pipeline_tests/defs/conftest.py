from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import dagster as dg
import pytest

from embed_pipeline_tests.defs.scene import Pipeline, settings_in


class Build(Protocol):
    def __call__(self, **variables: str) -> Pipeline: ...


@pytest.fixture(scope="session")
def memory() -> Iterator[dg.DagsterInstance]:
    """An instance in memory. Making one takes longer than most runs, so all tests share it."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """An instance on disk, shared by all tests that need one."""
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as instance:
        yield instance


@pytest.fixture
def instance(memory: dg.DagsterInstance) -> dg.DagsterInstance:
    """Empty at the start of each test."""
    memory.wipe()
    return memory


@pytest.fixture
def stored_instance(disk: dg.DagsterInstance) -> dg.DagsterInstance:
    """On disk, for what opens its instance by a reference; empty at the start of each test."""
    disk.wipe()
    return disk


@pytest.fixture
def build(tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[Build]:
    """Definitions on this test's files, under other settings."""
    built: list[Pipeline] = []

    def build(**variables: str) -> Pipeline:
        built.append(Pipeline(settings_in(tmp_path / "home", **variables), instance))
        return built[-1]

    yield build
    for pipeline in built:
        pipeline.close()


@pytest.fixture
def pipeline(build: Build) -> Pipeline:
    return build()


Print = Callable[[str], None]


@pytest.fixture(scope="module")
def print_line(request: pytest.FixtureRequest) -> Print:
    """Prints figures for the documents in the middle of a test; xdist swallows them."""
    plugins = request.config.pluginmanager
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")

    def print_line(line: str) -> None:
        if reporter and capture:
            with capture.global_and_fixture_disabled():
                reporter.write_line(line)

    return print_line
