"""`init` and `doctor`: what is prepared, what works, and how to mend what does not."""

from __future__ import annotations

import io
import os
import pty
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces.command_line import SCRIPT, environment
from embed_pipeline_tests.interfaces.conftest import CommandLine, create

SERVERS = ("--queue-uri", "bolt://localhost:{port}", "--graph-uri", "bolt://127.0.0.1:{port}")


def conditions(answer: list[dict[str, str]]) -> dict[str, str]:
    return {row["part"]: row["condition"] for row in answer}


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_init_says_which_files_it_prepared(cli: CommandLine, home: Path) -> None:
    first, second = cli("init"), cli("init", "--json")

    assert (first.code, second.code) == (0, 0)
    assert str(home / "queue.sqlite") in first.out
    assert str(home / "graph.sqlite") in second.json["ready"][1]


def test_init_reaches_for_the_servers_of_its_options(cli: CommandLine, closed_port: int) -> None:
    servers = [word.format(port=closed_port) for word in SERVERS]

    answer = cli(
        "init",
        *servers,
        "--graph-database",
        "people",
        EMBED_QUEUE_PASSWORD="password one",
        EMBED_GRAPH_PASSWORD="password two",
    )

    assert (answer.code, answer.out) == (1, "")
    assert f"embedding-jobs at bolt://localhost:{closed_port} cannot be reached" in answer.err
    assert "password" not in answer.err


def test_init_without_a_password_and_without_a_person_says_what_to_set(cli: CommandLine) -> None:
    answer = cli("init", *(word.format(port=7687) for word in SERVERS), "--queue-user", "me")

    assert (answer.code, answer.out) == (1, "")
    assert {sentence.split()[0] for sentence in answer.sentences} >= {
        "EMBED_QUEUE_PASSWORD",
        "EMBED_GRAPH_PASSWORD",
    }


def test_init_takes_the_store_of_the_queue_from_its_uri(cli: CommandLine, home: Path) -> None:
    answer = cli("init", "--queue-uri", "postgresql://db.example", "--queue-user", "me")

    assert (answer.code, answer.out) == (1, "")
    assert {sentence.split()[0] for sentence in answer.sentences} == {
        "EMBED_QUEUE_DATABASE",
        "EMBED_QUEUE_PASSWORD",
    }


def test_init_prepares_a_graph_server_beside_a_queue_in_a_file(
    cli: CommandLine, closed_port: int
) -> None:
    uri = f"bolt://localhost:{closed_port}"

    answer = cli("init", "--graph-uri", uri, EMBED_GRAPH_PASSWORD="password two")

    assert (answer.code, answer.out) == (1, "")
    assert f"neo4j at {uri} cannot be reached" in answer.err


def test_init_takes_no_password_on_the_command_line(cli: CommandLine) -> None:
    assert cli("init", "--queue-password", "secret").code == 2


def test_init_asks_a_person_for_the_passwords_unseen(
    home: Path, tmp_path: Path, closed_port: int
) -> None:
    servers = [word.format(port=closed_port) for word in SERVERS]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [SCRIPT, "init", *servers, "--graph-database", "people"],
        env=environment(home),
        cwd=tmp_path,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    ) as program:
        os.close(theirs)
        too_late = threading.Timer(60, program.kill)  # a test that waits for it fails, not hangs
        too_late.start()
        seen = answered(ours, "EMBED_QUEUE_PASSWORD: ")
        seen += answered(ours, "EMBED_GRAPH_PASSWORD: ")
        seen += read_until(ours, "cannot be reached")
        program.wait()
        too_late.cancel()
    os.close(ours)

    assert program.returncode == 1
    assert "hush-hush" not in seen


def answered(terminal: int, prompt: str) -> str:
    """What was shown up to the prompt; typing before it would be thrown away."""
    seen = read_until(terminal, prompt)
    os.write(terminal, b"hush-hush\n")
    return seen


def read_until(terminal: int, words: str) -> str:
    seen = ""
    while words not in seen:
        seen += os.read(terminal, 10_000).decode()
    return seen


def test_doctor_finds_a_new_home_sound(cli: CommandLine) -> None:
    answer = cli("doctor", "--json")

    found = conditions(answer.json)
    assert answer.code == 0
    assert "broken" not in found.values()
    assert found["versions"] == found["settings"] == found["provider"] == "ok"
    assert found["queue"] == found["graph"] == "note"


def test_doctor_finds_a_working_home_well(cli: CommandLine, services: Services) -> None:
    create(services, "a")
    cli("run")

    readable, parsed = cli("doctor"), cli("doctor", "--json")

    found = conditions(parsed.json)
    assert (readable.code, parsed.code) == (0, 0)
    assert {found[part] for part in ("queue", "graph", "clock", "model", "work")} == {"ok"}
    assert "mock/mock@64 answered in" in readable.out


def test_doctor_looks_without_making_files(cli: CommandLine, home: Path) -> None:
    cli("doctor", "--no-request")

    assert not (home / "queue.sqlite").exists()


def test_doctor_tells_bad_settings_and_goes_no_further(cli: CommandLine) -> None:
    answer = cli("doctor", "--json", EMBED_JOB_BATCH_SIZE="0", EMBED_JOB_MAX_ATTEMPTS="x")

    broken = [row for row in answer.json if row["condition"] == "broken"]
    assert answer.code == 1
    assert [row["part"] for row in broken] == ["settings", "settings"]
    assert all(row["remedy"] for row in broken)


def test_doctor_finds_a_damaged_file(cli: CommandLine, home: Path) -> None:
    home.mkdir()
    (home / "queue.sqlite").write_bytes(b"no database at all" * 500)

    answer = cli("doctor", "--json")

    assert answer.code == 1
    assert conditions(answer.json)["queue"] == "broken"


def test_doctor_finds_another_model(cli: CommandLine, services: Services) -> None:
    create(services, "a")
    cli("run")

    answer = cli("doctor", "--json", EMBEDDING_MODEL="other")

    assert (answer.code, conditions(answer.json)["model"]) == (1, "broken")


def test_doctor_finds_a_halted_queue(cli: CommandLine, services: Services) -> None:
    services.graph.models()
    services.jobs.switch.halt("the key was revoked", seen=0)

    answer = cli("doctor", "--json")

    (row,) = [row for row in answer.json if row["part"] == "work"]
    assert (answer.code, row["condition"]) == (1, "broken")
    assert row["remedy"] == "embed-pipeline resume"


@pytest.mark.parametrize(
    ("provider", "key", "address"),
    [
        ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("azure", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
    ],
)
def test_doctor_finds_a_provider_that_does_not_answer(
    cli: CommandLine, services: Services, closed_port: int, provider: str, key: str, address: str
) -> None:
    variables = {
        "EMBEDDING_PROVIDER": provider,
        key: "key-for-tests-only",
        address: f"http://127.0.0.1:{closed_port}/v1",
    }

    asked, not_asked = cli("doctor", "--json", **variables), cli("doctor", "--no-request", "--json")

    (broken,) = [row for row in asked.json if row["part"] == "provider"]
    assert (asked.code, broken["condition"]) == (1, "broken")
    assert broken["remedy"] == f"Check {key}, {address}, EMBEDDING_MODEL and the network."
    assert "provider" not in conditions(not_asked.json)
    assert "key-for-tests-only" not in asked.out


def test_doctor_finds_servers_that_are_away(cli: CommandLine, closed_port: int) -> None:
    answer = cli(
        "doctor",
        "--json",
        EMBED_STORE="neo4j",
        EMBED_QUEUE_URI=f"bolt://localhost:{closed_port}",
        EMBED_GRAPH_URI=f"bolt://localhost:{closed_port}",
        EMBED_QUEUE_PASSWORD="password one",
        EMBED_GRAPH_PASSWORD="password two",
    )

    found = conditions(answer.json)
    assert (answer.code, found["queue"], found["graph"]) == (1, "broken", "broken")
    assert "password" not in answer.out


def test_adopt_is_refused_where_no_other_program_writes(cli: CommandLine) -> None:
    answer = cli("adopt")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("Only a graph in Neo4j is adopted (EMBED_GRAPH_STORE=neo4j)")


def test_uninstall_names_the_files_of_a_home_and_changes_nothing(
    cli: CommandLine, home: Path, services: Services
) -> None:
    create(services, "a")

    answer = cli("uninstall", "--yes", "--json")

    assert answer.code == 0
    assert (answer.json["nodes"], answer.json["rules"]) == (0, [])
    assert f"delete {home / 'graph.sqlite'}" in answer.json["notes"][0]
    assert str(home / "queue.sqlite") in answer.json["notes"][1]
    assert services.graph.find_by_name("a")


def test_uninstall_refuses_while_a_worker_holds_a_lease(
    cli: CommandLine, services: Services
) -> None:
    create(services, "a")
    services.jobs.lease(owner="run-1", model=services.model, limit=1, token="t")

    answer = cli("uninstall", "--yes")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("Workers hold leases: run-1.")


def test_uninstall_asks_first(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))

    assert cli("uninstall").code == 1
