"""`embed-pipeline reaper init` and `embed-pipeline reaper run`."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from embed_pipeline import telemetry, wiring
from embed_pipeline.errors import ConfigurationError, SchemaMissing
from embed_pipeline.interfaces.cli.app import app
from embed_pipeline.settings import load_settings
from embed_pipeline.telemetry import redaction
from embed_pipeline_tests.interfaces.command_line import SCRIPT
from embed_pipeline_tests.reaper.scene import MINUTE, Scene

OURS = ("EMBED_", "EMBEDDING_", "OPENAI_", "REAPER_", "QUEUE_", "JOB_")


@pytest.fixture(autouse=True)
def process_left_as_it_was(tmp_path: Path, url: str) -> Iterator[None]:
    """A command sets up logs and secrets for its whole process."""
    logger = logging.getLogger(telemetry.LOGGER_NAME)
    before = logger.level, list(logger.handlers)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        for name in [name for name in os.environ if name.startswith(OURS)]:
            patch.delenv(name)
        patch.setenv("EMBED_ENV", "test")
        patch.setenv("EMBED_HOME", str(tmp_path / "home"))
        patch.setenv("EMBED_LOG_LEVEL", "ERROR")
        patch.setenv("REAPER_DATABASE_URL", url)
        patch.setattr(telemetry, "_render", telemetry._render)
        patch.setattr(redaction, "_spellings", set(redaction._spellings))
        patch.setattr(redaction, "_registered", redaction._registered)
        yield
    logger.setLevel(before[0])
    logger.handlers[:] = before[1]


def command(*words: str) -> Result:
    return CliRunner().invoke(app, ["reaper", *words])


def test_init_shows_the_sql_first_and_then_runs_it_once() -> None:
    shown = command("init", "--create-tables", "--dry-run")
    done = command("init", "--create-tables")
    again = command("init")

    assert [answer.exit_code for answer in (shown, done, again)] == [0, 0, 0]
    assert 'ALTER TABLE "jobs"' in shown.stdout
    assert shown.stdout.replace("to do.", "done.") == done.stdout
    assert again.stdout == "Nothing to do.\n"


def test_init_names_the_missing_table() -> None:
    assert isinstance(command("init").exception, SchemaMissing)


def test_run_once_reaps_and_counts_and_says_so(scene: Scene) -> None:
    requeued, failed = scene.processing(), scene.processing(attempt_count=5)

    answer = command("run", "--once")

    assert answer.exit_code == 0
    ending = r"Requeued 1 jobs and failed 1; the oldest lease ended \d+ s ago\."
    assert re.search(ending, answer.stdout)
    assert scene.row(requeued)["status"] == "queued"
    assert scene.row(failed)["status"] == "failed"
    store = wiring.open_job_store(load_settings())
    assert store.counters.read()["reaper_requeues"] == 1
    assert store.counters.read()["reaper_failures"] == 1
    store.close()


def test_run_dry_run_changes_nothing(scene: Scene) -> None:
    key = scene.processing()

    answer = command("run", "--dry-run", "--json")

    answered = json.loads(answer.stdout)
    assert (answered["reaper.requeues"], answered["dry_run"]) == (1, True)
    assert answered["jobs"][0]["job"] == str(key)
    assert scene.row(key)["status"] == "processing"


def test_run_exits_with_1_when_a_table_could_not_be_swept(scene: Scene) -> None:
    key = scene.processing(lease_expires_at=-MINUTE)
    scene.execute("DROP TABLE asr_jobs")

    answer = command("run")

    assert answer.exit_code == 1
    assert "embed-pipeline reaper init" in answer.stdout
    assert scene.row(key)["status"] == "queued"


@pytest.fixture
def watching(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """The service as a program of its own whose reader is a pipe; it sweeps once a minute."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with subprocess.Popen(
        [SCRIPT, "reaper", "run", "--watch", "--json"], stdout=subprocess.PIPE, text=True
    ) as service:
        impatience = threading.Timer(50, service.kill)
        impatience.start()
        yield service
        impatience.cancel()
        service.kill()


def test_watch_with_json_prints_a_line_per_sweep_at_once(watching: subprocess.Popen[str]) -> None:
    assert watching.stdout is not None

    line = watching.stdout.readline()
    watching.send_signal(signal.SIGTERM)
    rest = watching.stdout.read()

    assert json.loads(line)["problems"] == []
    assert (rest, watching.wait(timeout=30)) == ("", 0)


def test_watch_goes_with_neither_once_nor_dry_run() -> None:
    assert command("run", "--watch", "--once").exit_code == 2
    assert command("run", "--watch", "--dry-run").exit_code == 2


def test_without_a_url_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REAPER_DATABASE_URL")

    error = command("run").exception

    assert isinstance(error, ConfigurationError)
    assert error.problems[0].startswith("REAPER_DATABASE_URL must be set")
