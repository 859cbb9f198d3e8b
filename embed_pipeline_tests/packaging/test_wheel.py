"""The wheel and the sdist, installed outside of the repository (`make test-wheel`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from embed_pipeline_tests.defs.dev_server import DevServer, free_port, within
from embed_pipeline_tests.packaging.place import CHECKOUT, Place

pytestmark = pytest.mark.wheel

BOOKS = """name,entityType,observations
The Left Hand of Darkness,Book,An envoy on a frozen planet whose people have no fixed gender.
Roadside Picnic,Book,Scavengers search a zone that visitors from space left behind.
Moby Dick,Book,A captain hunts the white whale that took his leg.
"""
COMPONENT = """type: embed_pipeline.EmbedPipelineComponent

attributes:
  name: books
  settings: {EMBED_ENV: local, EMBEDDING_PROVIDER: local}
  schedules: {prune_history: false}
"""
FIGURES = """
query { assetOrError(assetKey: {path: ["books", "entity_embeddings"]}) { ... on Asset {
  assetMaterializations(limit: 1) { ...Figures } assetObservations(limit: 1) { ...Figures }
} } }
fragment Figures on DisplayableEvent {
  metadataEntries { label ... on FloatMetadataEntry { floatValue } }
}
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> str:
    (built,) = dist.glob("*.whl")
    return str(built)


@pytest.fixture(scope="module")
def full(wheel: str, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Every extra, and the tools of a `dg` project."""
    place = Place(tmp_path_factory.mktemp("full") / "place")
    place.install(f"{wheel}[all,deploy]", "dagster-dg-cli", "create-dagster")
    (place.folder / "books.csv").write_text(BOOKS)
    return place


def test_without_any_extra_it_loads_runs_and_searches(wheel: str, tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.install(wheel)
    (place.folder / "books.csv").write_text(BOOKS)
    size = f"{len(place.installed())} packages, {place.megabytes()} MB"

    def program(*words: str) -> str:
        return place.run("embed-pipeline", *words, EMBEDDING_PROVIDER="mock")

    program("load", "books.csv")
    program("run")
    found = program("search", "Moby Dick")
    advice = program("doctor")

    assert "Moby Dick" in found
    assert "pip install 'anyio" in advice
    sys.stdout.write(f"A base installation: {size}.\n")


def test_with_every_extra_the_steps_of_the_readme_work(full: Place) -> None:
    full.run("embed-pipeline", "load", "books.csv")
    full.run("embed-pipeline", "run")
    found = full.run("embed-pipeline", "search", "things left by aliens", "--json")
    full.run("embed-pipeline", "export", "jobs.parquet")
    full.run("embed-pipeline", "mcp")
    full.run("dagster", "job", "execute", "-m", "embed_pipeline.definitions", "-j", "embed_job")
    loaded = full.run(
        "python", "-c", "import embed_pipeline.reaper; print(embed_pipeline.__file__)"
    )

    assert found.index("Roadside Picnic") < found.index("Moby Dick")
    assert str(full.folder) in loaded


def test_a_fresh_dg_project_shows_its_coverage(full: Place) -> None:
    full.run("create-dagster", "project", "library", "--no-uv-sync")
    project = full.folder / "library"
    full.install("--no-deps", "--editable", str(project))

    def dg(*words: str) -> str:
        return full.run("dg", *words, cwd=project)

    listed = dg("list", "components", "--package", "embed_pipeline", "--json")
    dg("scaffold", "defs", "embed_pipeline.EmbedPipelineComponent", "books")
    (written,) = project.rglob("defs.yaml")
    scaffolded = written.read_text()
    written.write_text(COMPONENT)
    dg("check", "yaml")
    dg("check", "defs")
    shown = dg("list", "defs", "--json")
    (project / "books.csv").write_text(BOOKS)
    full.run("embed-pipeline", "load", "books.csv", cwd=project)
    dg("launch", "--job", "books_embed_job")
    dg("launch", "--job", "books_observe_job")
    with dev_server(full, project) as server:
        shown_in_ui = figures(server)

    assert "embed_pipeline.EmbedPipelineComponent" in listed
    assert "name: books" in scaffolded
    assert "books_observe_schedule" in shown
    assert "books_prune_history_schedule" not in shown
    assert shown_in_ui["coverage (%)"] == 100.0


def test_the_sdist_installs_and_brings_the_tests(dist: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    place = Place(tmp_path / "place")
    place.install(str(sdist))

    assert "embed-pipeline" in place.run("embed-pipeline", "--version")
    with tarfile.open(sdist) as archive:
        assert any(name.endswith("test_architecture.py") for name in archive.getnames())


def test_the_domain_works_with_the_lowest_versions_that_are_allowed(
    dist: Path, tmp_path: Path
) -> None:
    """Of the direct requirements; those that they bring along are the newest that fit."""
    (sdist,) = dist.glob("*.tar.gz")
    place = Place(tmp_path / "place")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("embed_pipeline-*")
    place.install("--resolution", "lowest-direct", f"{source}[all]")
    place.install("hypothesis", "jsonschema", "pytest", "pytest-xdist")

    # Old packages warn of what newer ones deprecate.
    pytest_ = ("python", "-m", "pytest", "-q", "-W", "default")
    place.run(*pytest_, "embed_pipeline_tests/domain", cwd=source)


@contextmanager
def dev_server(place: Place, project: Path) -> Iterator[DevServer]:
    """Whatever happens, nothing of its process group outlives the block."""
    port, log = free_port(), place.folder / "dev.log"
    command = [str(place.bin / "dg"), "dev", "--host", "127.0.0.1", "--port", str(port)]
    with (
        log.open("w") as output,
        subprocess.Popen(
            command,
            cwd=project,
            env=place.environment,
            stdout=output,
            stderr=output,
            process_group=0,
        ) as process,
    ):
        try:
            server = DevServer(port)
            within(120, server.is_up, lambda: log.read_text()[-3_000:])
            yield server
            process.send_signal(signal.SIGTERM)
            process.wait(90)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def figures(server: DevServer) -> dict[str, float | None]:
    """Of the newest materialization, and of the newest observation over it."""
    asset = server.ask(FIGURES)["assetOrError"]
    events = [*asset["assetMaterializations"], *asset["assetObservations"]]
    return {
        entry["label"]: entry.get("floatValue")
        for event in events
        for entry in event["metadataEntries"]
    }
