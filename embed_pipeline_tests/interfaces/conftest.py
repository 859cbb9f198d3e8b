from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from embed_pipeline import telemetry, wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.interfaces.cli import main
from embed_pipeline.interfaces.cli.output import console
from embed_pipeline.ports.clock import SystemClock
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.telemetry import redaction
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.command_line import OURS, Answer, environment
from embed_pipeline_tests.interfaces.past import Past


@pytest.fixture(autouse=True)
def process_left_as_it_was() -> Iterator[None]:
    """A command sets up logs for its whole process, which here is that of the other tests."""
    logger = logging.getLogger(telemetry.LOGGER_NAME)
    before = logger.level, list(logger.handlers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telemetry, "_render", telemetry._render)
        patch.setattr(redaction, "_spellings", set(redaction._spellings))
        patch.setattr(redaction, "_registered", redaction._registered)
        yield
    logger.setLevel(before[0])
    logger.handlers[:] = before[1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings({"EMBED_ENV": "test", "EMBED_HOME": str(home)})


@pytest.fixture
def services(settings: Settings) -> Iterator[Services]:
    """The same files as the commands', to arrange and to look."""
    opened = wiring.open_services(settings)
    with closing(opened.jobs), closing(opened.graph):
        yield opened


@pytest.fixture
def past(settings: Settings) -> Past:
    return Past(settings, SystemClock().now())


class CommandLine:
    """Calls `main()` with these words, and reads what it wrote and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._capsys, self._patch = capsys, patch

    def __call__(self, *words: str, **variables: str) -> Answer:
        for name, value in variables.items():
            self._patch.setenv(name, value)
        self._patch.setattr(sys, "argv", ["embed-pipeline", *words])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        written = self._capsys.readouterr()
        code = end.value.code or 0
        assert isinstance(code, int)
        return Answer(code=code, out=written.out, err=written.err)


@pytest.fixture
def cli(
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    monkeypatch.chdir(tmp_path)  # away from a `.env` of whoever runs the tests
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(console, "_width", 200)  # wide enough that no cell is folded
    return CommandLine(capsys, monkeypatch)


def create(services: Services, *names: str) -> None:
    entities = [NewEntity(name=name, entity_type="Thing") for name in names]
    create_entities(services.jobs, services.graph, entities, model=services.model)
