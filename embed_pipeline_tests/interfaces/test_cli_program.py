"""The real program: exit codes, streams and signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from embed_pipeline import wiring
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.ports.job_store import JobStore
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.usecases.entities.create import create_entities
from embed_pipeline_tests.interfaces.command_line import SCRIPT, environment, run_program
from embed_pipeline_tests.openai_server import OpenAIServer

SAMPLE = Path(__file__).parents[2] / "examples" / "sample_graph.csv"


def test_a_first_session_from_load_to_search(home: Path, tmp_path: Path) -> None:
    env = environment(home)

    loaded = run_program("load", str(SAMPLE), "--json", env=env, cwd=tmp_path)
    ran = run_program("run", "--json", env=env, cwd=tmp_path)
    found = run_program("search", "anything", "--json", env=env, cwd=tmp_path)

    assert (loaded.code, ran.code, found.code) == (0, 0, 0)
    assert loaded.json["created"] == ran.json["embedded"] == found.json["searchable"] == 200
    assert (loaded.err, ran.err, found.err) == ("", "", "")


def test_log_lines_never_reach_stdout(home: Path, tmp_path: Path) -> None:
    env = environment(home, EMBED_LOG_LEVEL="DEBUG")

    answer = run_program("load", str(SAMPLE), "--json", env=env, cwd=tmp_path)

    assert answer.json["created"] == 200
    assert all(json.loads(line)["event"] for line in answer.sentences)


def test_module_is_the_same_program(home: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "embed_pipeline", "force", "Nobody"],
        env=environment(home),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "No entity is named 'Nobody'.\n"


def test_production_with_nothing_set_prints_sentences_and_no_stack(
    home: Path, tmp_path: Path
) -> None:
    answer = run_program("status", env=environment(home, EMBED_ENV="production"), cwd=tmp_path)

    assert (answer.code, answer.out, len(answer.sentences)) == (1, "", 6)
    assert "Traceback" not in answer.err


def test_reader_that_leaves_early_gets_no_stack(home: Path, tmp_path: Path) -> None:
    command = f"'{SCRIPT}' --help | true"

    ended = subprocess.run(
        ["bash", "-c", command],
        env=environment(home),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert "Traceback" not in ended.stderr


# -- signals --------------------------------------------------------------------------------

MODEL = "openai/text-embedding-3-small@8"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(keep_texts=False) as server:
        yield server


@pytest.fixture
def variables(home: Path, server: OpenAIServer) -> dict[str, str]:
    return {
        "EMBED_ENV": "test",
        "EMBED_HOME": str(home),
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_DIMENSIONS": "8",
        "OPENAI_API_KEY": "key-for-tests-only",
        "OPENAI_BASE_URL": server.base_url,
        "EMBED_JOB_BATCH_SIZE": "3000",
        "EMBEDDING_CONCURRENCY": "1",
        "EMBED_LOG_LEVEL": "WARNING",
    }


@contextmanager
def filled_queue(settings: Settings, count: int) -> Iterator[JobStore]:
    with (
        closing(wiring.open_job_store(settings)) as jobs,
        closing(wiring.open_entity_store(settings)) as graph,
    ):
        entities = [NewEntity(name=f"entity {number}") for number in range(count)]
        create_entities(jobs, graph, entities, model=MODEL)
        yield jobs


def until(condition: Callable[[], bool], *, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def default_interrupt() -> None:
    """A shell that starts us in the background would have Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_what_arrives_and_gives_the_rest_back(
    variables: dict[str, str],
    server: OpenAIServer,
    home: Path,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    """Two requests wait in one lease; the signal comes while the first is under way."""
    asked = 0

    def hold(_texts: object) -> None:
        nonlocal asked
        asked += 1
        until(lambda: interrupted)

    interrupted = False
    server.fault_for = hold
    with (
        filled_queue(load_settings(variables), 2_058) as jobs,
        started(SCRIPT, "run", env=environment(home, **variables), cwd=tmp_path) as program,
    ):
        until(lambda: asked == 1)
        program.send_signal(number)
        until_interrupted(program)
        interrupted = True
        _, err = program.communicate(timeout=30)

        status = jobs.get_queue_status()

    assert (program.returncode, asked) == (130, 1)
    assert err.endswith("Interrupted; leased jobs were released.\n")
    assert "Traceback" not in err
    assert (status.completed, status.pending, status.processing) == (2_048, 10, 0)


@contextmanager
def started(
    *words: str | Path, env: Mapping[str, str], cwd: Path
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        words,
        env=env,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_interrupt,
    ) as program:
        too_late = threading.Timer(60, program.kill)  # a test that waits for it fails, not hangs
        too_late.start()
        try:
            yield program
        finally:
            too_late.cancel()
            program.kill()


def until_interrupted(program: subprocess.Popen[str]) -> None:
    """The worker says so in its log before it waits for the answer."""
    assert program.stderr is not None
    for line in program.stderr:
        if "run.interrupted" in line:
            return
    raise AssertionError("it never said that it was interrupted")
