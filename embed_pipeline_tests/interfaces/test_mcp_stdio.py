"""`embed-pipeline mcp` as a client starts it: a program, its pipes, its signals."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.types import INVALID_REQUEST, PARSE_ERROR

from embed_pipeline.worker.context import Services
from embed_pipeline_tests.interfaces import mcp_story
from embed_pipeline_tests.interfaces.command_line import environment
from embed_pipeline_tests.interfaces.mcp_client import documented_program, talk_to_program

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
CREATE = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "create_entities", "arguments": {"entities": [{"name": "a"}]}},
}
HEALTH = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "get_health_status", "arguments": {}},
}


def call_of(argument: str) -> str:
    call = f'{{"name": "semantic_search", "arguments": {{"query": {argument}}}}}'
    return f'{{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {call}}}'


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_modes_of_force_work_in_a_real_session_on_sqlite(
    home: Path, services: Services, mode: str
) -> None:
    mcp_story.tell(documented_program(home), services, mode=mode)


def test_unreachable_databases_are_said_and_the_server_lives_on(home: Path) -> None:
    nowhere = {
        "EMBED_STORE": "neo4j",
        "EMBED_QUEUE_URI": "bolt://127.0.0.1:1",
        "EMBED_GRAPH_URI": "bolt://127.0.0.1:2",
    }
    secret = {f"EMBED_{name}_PASSWORD": "correct horse" for name in ("QUEUE", "GRAPH")}

    with talk_to_program(documented_program(home, **nowhere, **secret)) as agent:
        created = agent.call("create_entities", entities=[{"name": "a"}])
        health = agent.call("get_health_status")

    assert created.is_error
    assert "try again in a minute" in created.sentence
    assert health.facts["status"] == "CRITICAL (queue unreachable)"
    assert "correct horse" not in created.sentence + health.sentence


def test_unusable_settings_end_it_with_their_sentence(home: Path) -> None:
    with started(home, EMBED_STORE="papyrus") as program:
        out, err = program.communicate(timeout=60)

    assert (program.returncode, out) == (1, "")
    assert "EMBED_STORE" in err
    assert "Traceback" not in err


def test_stdout_carries_only_protocol_and_logs_go_to_stderr(home: Path) -> None:
    with started(home, EMBED_LOG_LEVEL="INFO", EMBED_LOG_FORMAT="json") as program:
        answers = [ask(program, message) for message in (HELLO, CREATE)]
        out, err = program.communicate(timeout=60)

    assert [answer["id"] for answer in answers] == [1, 2]
    assert out == ""
    assert "entities.created" in err


def test_end_of_input_ends_the_server_and_closes_the_stores(home: Path) -> None:
    with started(home) as program:
        ask(program, HELLO)
        ask(program, CREATE)
        _, err = program.communicate(timeout=60)

    assert (program.returncode, err) == (0, "")
    assert stores_are_closed(home)


def test_call_under_way_is_finished_before_the_stores_are_closed(
    home: Path, services: Services
) -> None:
    services.graph.probe()  # the file is made on first use
    with started(home) as program, locked(home / "graph.sqlite") as unlock:
        ask(program, HELLO)
        tell(program, CREATE)
        assert ask(program, HEALTH)["id"] == 3, "the call before it waits for the lock"
        hang_up(program)
        assert program.poll() is None
        unlock()
        answered = heard(program)
        code = program.wait(timeout=60)

    assert (code, answered["id"], answered["result"]["isError"]) == (0, 2, False)
    assert len(services.graph.find_by_name("a")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_call_that_a_signal_lets_finish_is_answered(
    home: Path, services: Services, number: signal.Signals
) -> None:
    services.graph.probe()
    with started(home) as program, locked(home / "graph.sqlite") as unlock:
        ask(program, HELLO)
        tell(program, CREATE)
        assert ask(program, HEALTH)["id"] == 3, "the call before it waits for the lock"
        program.send_signal(number)
        assert program.poll() is None
        unlock()
        answered = heard(program)
        code = program.wait(timeout=60)

    assert (code, answered["id"], answered["result"]["isError"]) == (-number, 2, False)
    assert len(services.graph.find_by_name("a")) == 1


def test_call_that_the_client_cancels_does_not_keep_the_server(
    home: Path, services: Services
) -> None:
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": CREATE["id"]}}
    services.graph.probe()
    with started(home) as program, locked(home / "graph.sqlite") as unlock:
        ask(program, HELLO)
        tell(program, CREATE)
        tell(program, {"jsonrpc": "2.0", **cancelled})
        assert ask(program, HEALTH)["id"] == 3
        hang_up(program)
        unlock()
        code = program.wait(timeout=60)

    assert code == 0


def test_message_that_cannot_be_read_is_answered_and_logged(home: Path) -> None:
    unreadable = {
        call_of(r'"\ud83d"'): (7, PARSE_ERROR),  # half an emoji
        call_of("[" * 500 + "]" * 500): (7, PARSE_ERROR),
        call_of("[" * 100_000): (7, PARSE_ERROR),
        call_of('"\udcff"'): (7, PARSE_ERROR),  # not UTF-8
        '{"params": {"id": 3}, "id": 7': (None, PARSE_ERROR),
        "hello": (None, PARSE_ERROR),
        "[]": (None, INVALID_REQUEST),
        '{"jsonrpc": "2.0", "id": "seven", "method": 5}': ("seven", INVALID_REQUEST),
        r'{"jsonrpc": "2.0", "id": "\ud83d", "method": 5}': (None, PARSE_ERROR),
        '{"jsonrpc": "2.0", "id": null, "method": "tools/list"}': (None, INVALID_REQUEST),
        '{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}': (None, INVALID_REQUEST),
        '{"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"}': (None, INVALID_REQUEST),
    }
    with started(home, EMBED_LOG_LEVEL="INFO", EMBED_LOG_FORMAT="json") as program:
        ask(program, HELLO)
        answers = []
        for line in unreadable:
            say(program, f"\n{line}\n")
            answer = heard(program)
            answers.append((answer["id"], answer["error"]["code"]))
        lives = ask(program, HEALTH)
        _, err = program.communicate(timeout=60)

    assert answers == list(unreadable.values())
    assert lives["id"] == 3
    assert err.count("message.refused") == len(unreadable)


def test_client_that_closes_its_reading_end_gets_no_traceback(home: Path) -> None:
    with started(home) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        tell(program, HELLO)
        hang_up(program)
        code, err = program.wait(timeout=60), program.stderr.read()

    assert (code, err) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_server_at_once_and_closes_the_stores(
    home: Path, number: signal.Signals
) -> None:
    with started(home) as program:
        ask(program, HELLO)
        ask(program, CREATE)
        program.send_signal(number)  # stdin stays open: nobody hangs up
        code = program.wait(timeout=60)

    assert code == -number
    assert stores_are_closed(home)


def stores_are_closed(home: Path) -> bool:
    """The last connection to close removes SQLite's write-ahead log; a killed one leaves it."""
    files = {path.name for path in home.iterdir()}
    assert {"queue.sqlite", "graph.sqlite"} <= files
    return not any(name.endswith("-wal") for name in files)


@contextmanager
def started(home: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    program = documented_program(home)
    process = subprocess.Popen(
        [program.command, *program.args],
        env=environment(home, **variables),
        cwd=program.cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
    )
    try:
        yield process
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        process.wait()


@contextmanager
def locked(path: Path) -> Iterator[Callable[[], None]]:
    """Somebody else's transaction, until it is told to end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield partial(_end, connection)


def _end(transaction: sqlite3.Connection) -> None:
    transaction.execute("ROLLBACK")


def ask(program: subprocess.Popen[str], message: dict[str, Any]) -> Any:
    tell(program, message)
    return heard(program)


def tell(program: subprocess.Popen[str], message: dict[str, Any]) -> None:
    say(program, json.dumps(message) + "\n")


def say(program: subprocess.Popen[str], line: str) -> None:
    assert program.stdin is not None
    program.stdin.write(line)
    program.stdin.flush()


def heard(program: subprocess.Popen[str]) -> Any:
    assert program.stdout is not None
    return json.loads(program.stdout.readline())


def hang_up(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None
    program.stdin.close()
