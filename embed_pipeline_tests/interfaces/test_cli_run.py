"""`embed-pipeline run`: the worker without Dagster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from embed_pipeline.errors import CredentialsRefused, InputRefused
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.providers.mock import MockProvider
from embed_pipeline.worker.context import Services
from embed_pipeline_tests.clocks import HOUR
from embed_pipeline_tests.contracts.entity_store.scene import coverage_of
from embed_pipeline_tests.interfaces.command_line import environment, run_at_terminal
from embed_pipeline_tests.interfaces.conftest import CommandLine, create
from embed_pipeline_tests.interfaces.past import Past


def test_run_embeds_what_is_queued(cli: CommandLine, services: Services) -> None:
    create(services, "a", "b", "c")

    answer = cli("run", "--json")

    assert answer.code == 0
    assert (answer.json["completed"], answer.json["embedded"]) == (3, 3)
    assert answer.json["ended_because"] == "the queue is empty"
    assert coverage_of(services.graph, model=services.model).percent == 100


def test_run_is_readable_and_says_that_nothing_was_left_to_do(
    cli: CommandLine, services: Services
) -> None:
    create(services, "a")

    first, second = cli("run").out.splitlines(), cli("run").out.splitlines()

    assert ["completed", "1"] in [line.split() for line in first]
    assert ["completed", "0"] in [line.split() for line in second]
    assert any("the queue is empty" in line for line in second)


def test_run_recovers_before_its_first_lease(
    cli: CommandLine, past: Past, services: Services
) -> None:
    past.leased("vanished entity", ago=HOUR)

    cli("run")

    assert services.jobs.get_queue_status().processing == 0


def test_run_recovers_nothing_where_automatic_recovery_is_off(
    cli: CommandLine, past: Past, services: Services
) -> None:
    past.leased("vanished entity", ago=HOUR)

    cli("run", EMBED_JOB_RECOVERY_INTERVAL="0")

    assert services.jobs.get_queue_status().processing == 1


def test_run_of_a_paused_queue_says_why_it_did_nothing(
    cli: CommandLine, services: Services
) -> None:
    create(services, "waiting")
    services.jobs.switch.pause("maintenance")

    answer = cli("run", "--json")

    assert answer.code == 1
    assert answer.json["queue"] == "paused: maintenance"
    assert services.jobs.get_queue_status().pending == 1


def test_refused_text_is_told_and_ends_with_one(
    cli: CommandLine, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = MockProvider.embed

    def refuse(self: MockProvider, texts: Sequence[str]) -> Embedded:
        if "[/odd]" in str(texts):
            raise InputRefused("The text [/red] is refused.")
        return answer(self, texts)

    create(services, "[/odd]")
    monkeypatch.setattr(MockProvider, "embed", refuse)

    readable = cli("run")

    assert readable.code == 1
    assert "[/odd]: The text [/red] is refused." in readable.out
    assert services.jobs.get_queue_status().failed == 1


def test_critical_error_stops_the_run_and_is_named(
    cli: CommandLine, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: MockProvider, _texts: Sequence[str]) -> Embedded:
        raise CredentialsRefused("The key is refused.")

    create(services, "a", "b")
    monkeypatch.setattr(MockProvider, "embed", refuse)

    answer = cli("run", "--json")

    assert (answer.code, answer.json["queue"]) == (1, "halted: The key is refused.")
    assert services.jobs.get_queue_status().pending == 2
    assert cli("health").code == 1


def test_run_shows_a_person_how_far_it_is(home: Path, tmp_path: Path, services: Services) -> None:
    create(services, *(f"thing {number}" for number in range(30)))
    env = environment(home, EMBED_JOB_BATCH_SIZE="10")

    answer = run_at_terminal("run", env=env, cwd=tmp_path)

    assert answer.code == 0
    assert "Embedding" in answer.out
    assert "per second" in answer.out
    assert services.jobs.get_queue_status().completed == 30
