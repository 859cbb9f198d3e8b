"""REAPER_DATABASE_URL is set, but the extra with its driver is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from embed_pipeline.errors import install_command
from embed_pipeline_tests.interfaces.command_line import environment

WITHOUT_DRIVER = "import sys; sys.modules['psycopg'] = None; "
COMMAND = "from embed_pipeline.interfaces.cli import main; sys.argv[1:] = ['reaper', '{}']; main()"
SENTENCE = f"The reaper needs the package psycopg: {install_command('reaper')}."


def ended(program: str, tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER + program],
        env=environment(tmp_path / "home", **more),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_dagster_says_what_to_install_as_the_last_line(tmp_path: Path) -> None:
    loaded = ended(
        "import embed_pipeline.definitions",
        tmp_path,
        REAPER_DATABASE_URL="postgresql://localhost/x",
    )

    assert loaded.stderr.splitlines()[-1] == (
        f"embed_pipeline.errors.ConfigurationError: {SENTENCE}"
    )


@pytest.mark.parametrize("command", ["init", "run"])
def test_commands_say_only_what_to_install(tmp_path: Path, command: str) -> None:
    answered = ended(
        COMMAND.format(command), tmp_path, REAPER_DATABASE_URL="postgresql://localhost/x"
    )

    assert (answered.returncode, answered.stderr.splitlines()) == (1, [SENTENCE])


def test_everything_else_works_without_the_driver(tmp_path: Path) -> None:
    loaded = ended("import embed_pipeline.definitions", tmp_path)

    assert (loaded.returncode, loaded.stderr) == (0, "")
