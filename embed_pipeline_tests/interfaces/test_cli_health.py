"""`embed-pipeline health || page-somebody`: the state, the reasons and the exit code."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.conftest import CommandLine, create
from embed_pipeline_tests.interfaces.past import Past, failure

Break = Callable[[Path], str]
"""Makes the queue unusable and says what the sentence about it contains."""

UNREACHABLE = "CRITICAL (queue unreachable)"


def test_new_queue_is_healthy_and_its_success_rate_unknown(cli: CommandLine) -> None:
    readable, parsed = cli("health"), cli("health", "--json")

    assert (readable.code, parsed.code) == (0, 0)
    assert "HEALTHY" in readable.out
    assert "unknown" in readable.out
    assert parsed.json["success_rate"] is None


def test_successes_are_shown_with_their_rate(cli: CommandLine, past: Past) -> None:
    past.completed("a", "b", ago=timedelta(minutes=1))

    readable, parsed = cli("health"), cli("health", "--json").json

    assert "100% of the last 100" in readable.out
    assert (parsed["status"], parsed["success_rate"]) == ("HEALTHY", 1.0)
    assert parsed["last_success_at"].endswith("+00:00")


def test_five_consecutive_failures_are_degraded_with_the_count(
    cli: CommandLine, past: Past
) -> None:
    past.failed("a", "b", "c", "d", "e", how=failure(message="no [/red] room"))

    readable, parsed = cli("health"), cli("health", "--json")

    assert (readable.code, parsed.code) == (1, 1)
    assert "DEGRADED" in readable.out
    assert "5 × Refused: no [/red] room" in readable.out
    assert parsed.json["consecutive_failures"] == 5
    assert parsed.json["reasons"] == ["5 consecutive failures"]


def test_open_breaker_is_degraded(cli: CommandLine, services: Services) -> None:
    services.jobs.breakers.trip("mock", seen=0, error=failure(message="no answer"))

    answer = cli("health", "--json")

    assert (answer.code, answer.json["status"]) == (1, "DEGRADED")
    assert answer.json["reasons"] == ["breaker of mock is open: no answer"]


def test_halt_is_critical(cli: CommandLine, services: Services) -> None:
    services.jobs.switch.halt("the key was revoked", seen=0)

    answer = cli("health", "--json")

    assert (answer.code, answer.json["status"]) == (1, "CRITICAL")
    assert answer.json["reasons"] == ["halted: the key was revoked"]


def test_pause_is_told_but_healthy(cli: CommandLine, services: Services) -> None:
    services.jobs.switch.pause("tonight")

    answer = cli("health", "--json")

    assert (answer.code, answer.json["reasons"]) == (0, ["paused: tonight"])


def damaged(home: Path) -> str:
    home.mkdir()
    (home / "queue.sqlite").write_bytes(b"no database at all" * 500)
    return "is not a SQLite database"


def home_is_a_file(home: Path) -> str:
    home.write_text("in the way")
    return "cannot be made"


def queue_is_a_folder(home: Path) -> str:
    (home / "queue.sqlite").mkdir(parents=True)
    return "cannot be opened"


UNUSABLE = pytest.mark.parametrize("break_it", [damaged, home_is_a_file, queue_is_a_folder])


@UNUSABLE
def test_unreachable_queue_is_critical(cli: CommandLine, home: Path, break_it: Break) -> None:
    reason = break_it(home)

    readable, parsed = cli("health"), cli("health", "--json")

    assert (readable.code, parsed.code) == (1, 1)
    assert UNREACHABLE in readable.out
    assert parsed.json["status"] == UNREACHABLE
    assert reason in parsed.json["reasons"][0]


@UNUSABLE
@pytest.mark.parametrize("command", ["status", "recover", "cleanup", "pause", "failed"])
def test_unusable_queue_is_one_sentence_for_the_others(
    cli: CommandLine, home: Path, break_it: Break, command: str
) -> None:
    reason = break_it(home)

    answer = cli(command, "--json")

    assert (answer.code, answer.out) == (1, "")
    assert len(answer.sentences) == 1
    assert reason in answer.sentences[0]


def test_queue_of_a_newer_program_is_refused_with_what_to_do(
    cli: CommandLine, home: Path, services: Services
) -> None:
    create(services, "kept")
    services.jobs.close()
    set_version(home / "queue.sqlite", 99)

    answer = cli("status")

    assert answer.code == 1
    assert "schema version 99" in answer.err
    assert "Traceback" not in answer.err


def set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
