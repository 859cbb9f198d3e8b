from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import dagster as dg
import pytest

from embed_pipeline_tests.defs.scene import Pipeline, settings_in


class Build(Protocol):
    def __call__(self, **variables: str) -> Pipeline: ...


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    """Definitions on this test's files, under other settings."""
    built: list[Pipeline] = []

    def build(**variables: str) -> Pipeline:
        built.append(Pipeline(settings_in(tmp_path / "home", **variables)))
        return built[-1]

    yield build
    for pipeline in built:
        pipeline.close()


@pytest.fixture
def pipeline(build: Build) -> Pipeline:
    return build()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """In memory: one on disk costs most of a second, and nothing here outlives its test."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


Tell = Callable[[str], None]


@pytest.fixture(scope="module")
def tell(request: pytest.FixtureRequest) -> Tell:
    """Figures for the documents, in the middle of a test; under xdist nobody hears them."""
    plugins = request.config.pluginmanager
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")

    def tell(line: str) -> None:
        if reporter and capture:
            with capture.global_and_fixture_disabled():
                reporter.write_line(line)

    return tell
