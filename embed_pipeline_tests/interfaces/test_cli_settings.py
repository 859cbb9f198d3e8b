"""Bad settings: one sentence each on stderr, exit 1, before anything is opened."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from embed_pipeline_tests.interfaces.conftest import CommandLine

MISSING_IN_PRODUCTION = {
    "EMBED_JOB_RETENTION_DAYS",
    "OPENAI_API_KEY",
    "EMBED_QUEUE_URI",
    "EMBED_QUEUE_PASSWORD",
    "EMBED_GRAPH_URI",
    "EMBED_GRAPH_PASSWORD",
}
COMMANDS = [
    ("init",),
    ("why", "name"),
    ("text", "name"),
    ("preview",),
    ("adopt",),
    ("export", "jobs.csv"),
    ("cancel", "name"),
    ("cancel", "--all"),
    ("status",),
    ("health",),
    ("recover",),
    ("cleanup",),
    ("pause",),
    ("resume",),
    ("failed",),
    ("retry-failed",),
    ("load", "entities.csv"),
    ("run",),
    ("coverage",),
    ("discover",),
    ("force",),
    ("search", "words"),
    ("summary",),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_production_with_nothing_set_is_refused_with_a_sentence_per_setting(
    cli: CommandLine, home: Path, command: tuple[str, ...]
) -> None:
    answer = cli(*command, "--json", EMBED_ENV="production")

    assert (answer.code, answer.out) == (1, "")
    assert {sentence.split()[0] for sentence in answer.sentences} == MISSING_IN_PRODUCTION
    assert all(sentence.endswith(".") for sentence in answer.sentences)
    assert not home.exists()


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("EMBED_ENV", "prod", "local, test or production"),
        ("EMBED_JOB_RETENTION_DAYS", "31", "from 7 to 30"),
        ("EMBED_JOB_RETENTION_DAYS", "", "from 7 to 30"),
        ("EMBED_JOB_RECOVERY_INTERVAL", "-1", "0 (off) or a whole number"),
        ("EMBEDDING_RATE_LIMIT_TOKENS", "0", "from 1 to"),
        ("EMBEDDING_PROVIDER", "magic", "openai, azure, local or mock"),
        ("EMBED_LOG_LEVEL", "loud", "DEBUG, INFO, WARNING or ERROR"),
    ],
)
def test_bad_value_is_named_with_what_is_allowed(
    cli: CommandLine, variable: str, value: str, allowed: str
) -> None:
    answer = cli("status", "--json", **{variable: value})

    assert (answer.code, answer.out) == (1, "")
    assert answer.sentences[0].startswith(f"{variable} must be ")
    assert allowed in answer.err


def test_all_bad_values_are_told_at_once(cli: CommandLine) -> None:
    answer = cli("status", EMBED_JOB_BATCH_SIZE="0", EMBED_JOB_MAX_ATTEMPTS="x")

    assert {sentence.split()[0] for sentence in answer.sentences} == {
        "EMBED_JOB_BATCH_SIZE",
        "EMBED_JOB_MAX_ATTEMPTS",
    }


def test_secret_is_never_echoed_not_even_from_a_wrong_variable(cli: CommandLine) -> None:
    key = secrets.token_hex(16)

    answer = cli(
        "status",
        OPENAI_API_KEY=key,
        EMBEDDING_MODEL=f"{key} {key}",
        EMBED_QUEUE_URI=f"bolt://neo4j:{key}@host",
        EMBED_STORE="neo4j",
    )

    assert answer.code == 1
    assert "EMBEDDING_MODEL must be" in answer.err
    assert key not in answer.out + answer.err


def test_unset_environment_is_said_by_doctor_and_by_no_other_command(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EMBED_ENV")

    status, doctor = cli("status", "--json"), cli("doctor", "--no-request", "--json")

    assert (status.json["queue"], status.err) == ("running", "")
    assert doctor.err == ""
    assert [row["message"] for row in doctor.json if "EMBED_ENV is not set" in row["message"]] == [
        "EMBED_ENV is not set: using local (by default SQLite and the offline model)."
    ]


def test_misspelt_setting_is_pointed_out(cli: CommandLine) -> None:
    answer = cli("status", "--json", EMBED_JOB_BATCHSIZE="7")

    assert answer.code == 0
    assert "did you mean EMBED_JOB_BATCH_SIZE?" in answer.err


def test_settings_come_from_a_dotenv_file_too(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("EMBED_JOB_RETENTION_DAYS=99\n")

    answer = cli("status")

    assert answer.code == 1
    assert "got '99'" in answer.err
