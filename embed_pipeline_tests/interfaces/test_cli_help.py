"""What a person meets first: the help, the version, and wrong usage."""

from __future__ import annotations

import pytest

from embed_pipeline import __version__
from embed_pipeline_tests.interfaces.conftest import CommandLine

COMMANDS = [
    "init",
    "doctor",
    "why",
    "text",
    "preview",
    "adopt",
    "export",
    "cancel",
    "status",
    "health",
    "recover",
    "cleanup",
    "pause",
    "resume",
    "failed",
    "retry-failed",
    "load",
    "run",
    "coverage",
    "discover",
    "force",
    "search",
    "summary",
]


def test_help_names_every_command(cli: CommandLine) -> None:
    answer = cli("--help")

    assert answer.code == 0
    assert all(f" {command} " in answer.out for command in COMMANDS)


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(
    cli: CommandLine, command: str, flag: str
) -> None:
    answer = cli(command, flag)

    assert (answer.code, answer.err) == (0, "")
    assert "--json" in answer.out
    assert f"embed-pipeline {command}" in answer.out.partition("Example")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_needs_no_settings(cli: CommandLine, command: str) -> None:
    assert cli(command, "--help", EMBED_ENV="production").code == 0


def test_version_is_shown(cli: CommandLine) -> None:
    assert cli("--version").out == f"embed-pipeline {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        ("why", "\udcff"),
        ("why", "--key", "\udcff"),
        ("force", "\udcff"),
        ("cancel", "\udcff"),
        ("search", "\udcff"),
        ("pause", "--reason", "\udcff"),
    ],
)
def test_argument_that_is_not_utf8_is_refused_in_a_sentence(
    cli: CommandLine, words: tuple[str, ...]
) -> None:
    answer = cli(*words)

    assert answer.code == 2
    assert "is not valid UTF-8." in answer.err


@pytest.mark.parametrize("words", [("embed",), ("status", "--loud"), ("load",), ("search",), ()])
def test_wrong_usage_ends_with_two(cli: CommandLine, words: tuple[str, ...]) -> None:
    answer = cli(*words)

    assert answer.code == 2
    assert "Usage" in answer.out + answer.err
