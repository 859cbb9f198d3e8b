"""Where settings come from, their defaults by environment, and how problems are reported."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.settings import Environment, ProviderName, Settings, StoreName, load_settings
from embed_pipeline.settings.load import KNOWN
from embed_pipeline_tests.settings.environments import PRODUCTION, problems


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty current directory and an environment without any of our variables."""
    for name in KNOWN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_set_means_local_with_sqlite_and_the_offline_model() -> None:
    settings = load_settings({})

    assert settings.environment is Environment.LOCAL
    assert (settings.stores.queue, settings.stores.graph) == (StoreName.SQLITE, StoreName.SQLITE)
    assert settings.provider.name is ProviderName.LOCAL
    assert settings.home == Path(".embed_pipeline")
    assert settings.notes == (
        "EMBED_ENV is not set: using local (by default SQLite and the offline model).",
    )


@pytest.mark.parametrize(
    ("environ", "store", "provider", "model", "dimensions"),
    [
        ({"EMBED_ENV": "local"}, "sqlite", "local", "l2_supercat", 256),
        ({"EMBED_ENV": "test"}, "sqlite", "mock", "mock", 64),
        (PRODUCTION, "neo4j", "openai", "text-embedding-3-small", 1536),
    ],
)
def test_the_environment_chooses_the_defaults(
    environ: dict[str, str], store: str, provider: str, model: str, dimensions: int
) -> None:
    settings = load_settings(environ)

    assert (settings.stores.queue, settings.stores.graph) == (store, store)
    assert settings.provider.name == provider
    assert (settings.provider.model, settings.provider.dimensions) == (model, dimensions)
    assert settings.notes == ()


@pytest.mark.parametrize("value", ["prod", "", "LOCALLY", "local test"])
def test_an_unknown_environment_is_refused_with_the_allowed_names(value: str) -> None:
    assert problems({"EMBED_ENV": value}) == (
        f"EMBED_ENV must be local, test or production, got {value!r}.",
    )


def test_production_with_nothing_set_names_each_missing_setting() -> None:
    reported = problems({"EMBED_ENV": "production"})

    assert [sentence.split()[0] for sentence in reported] == [
        "EMBED_JOB_RETENTION_DAYS",
        "OPENAI_API_KEY",
        "EMBED_QUEUE_URI",
        "EMBED_QUEUE_PASSWORD",
        "EMBED_GRAPH_URI",
        "EMBED_GRAPH_PASSWORD",
    ]
    assert all("must be set" in sentence for sentence in reported)


def test_all_bad_settings_are_reported_at_once() -> None:
    reported = problems(
        {
            "EMBED_ENV": "production",
            "EMBED_JOB_RETENTION_DAYS": "31",
            "EMBED_JOB_BATCH_SIZE": "0",
            "EMBEDDING_PROVIDER": "bedrock",
            "EMBED_STORE": "sqlite",
            "EMBED_ENTITY_LABEL": "two words",
            "EMBED_LOG_LEVEL": "chatty",
        }
    )

    assert reported == (
        "EMBED_JOB_RETENTION_DAYS must be a whole number of days from 7 to 30, got '31'.",
        "EMBED_JOB_BATCH_SIZE must be a whole number of jobs from 1 to 10000, got '0'.",
        "EMBEDDING_PROVIDER must be openai, azure, local or mock, got 'bedrock'.",
        "OPENAI_API_KEY must be set in production when EMBEDDING_PROVIDER is openai.",
        "EMBED_ENTITY_LABEL must be a name of up to 64 letters, digits and underscores that does"
        " not start with a digit and is not needs_embedding or anything that begins with"
        " embedding, got 'two words'.",
        "EMBED_LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR, got 'chatty'.",
    )


def test_a_bad_value_is_one_problem_and_not_also_a_missing_one() -> None:
    reported = problems({**PRODUCTION, "EMBED_JOB_RETENTION_DAYS": ""})

    assert reported == (
        "EMBED_JOB_RETENTION_DAYS must be a whole number of days from 7 to 30, got ''.",
    )


def test_a_long_bad_value_is_cut_in_its_sentence() -> None:
    (sentence,) = problems({"EMBED_JOB_BATCH_SIZE": "9" * 5000})

    assert len(sentence) < 200
    assert sentence.endswith("…'.")


def test_names_are_taken_in_any_case() -> None:
    settings = load_settings({"EMBED_ENV": "Test", "EMBED_LOG_LEVEL": "debug"})

    assert (settings.environment, settings.logging.level) == ("test", "DEBUG")


def test_home_expands_the_users_folder() -> None:
    assert load_settings({"EMBED_HOME": "~/data"}).home == Path.home() / "data"


@pytest.mark.parametrize("value", ["", " ", "~nobody-of-that-name/x"])
def test_a_home_that_leads_nowhere_is_refused(value: str) -> None:
    assert problems({"EMBED_HOME": value}) == (
        f"EMBED_HOME must be the path of a folder, got {value!r}.",
    )


@pytest.mark.parametrize(
    ("name", "note"),
    [
        (
            "EMBED_JOB_RETENTON_DAYS",
            "EMBED_JOB_RETENTON_DAYS is not a setting: did you mean EMBED_JOB_RETENTION_DAYS?",
        ),
        (
            "embedding_provider",
            "embedding_provider is not a setting: did you mean EMBEDDING_PROVIDER?",
        ),
        ("EMBED_XYZZY_QQ", "EMBED_XYZZY_QQ is not a setting: it is ignored."),
    ],
)
def test_a_likely_typing_error_is_noted(name: str, note: str) -> None:
    assert load_settings({"EMBED_ENV": "test", name: "x"}).notes == (note,)


def test_other_peoples_variables_are_ignored() -> None:
    settings = load_settings({"EMBED_ENV": "test", "PATH": "/bin", "_env_file": "x", "QUEUE": "1"})

    assert settings.notes == ()


def test_the_environment_wins_over_the_file_and_a_difference_is_noted(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean / ".env").write_text("EMBED_ENV=local\nEMBED_JOB_BATCH_SIZE=7\nEMBED_HOME\n")
    monkeypatch.setenv("EMBED_ENV", "test")

    settings = load_settings()

    assert settings.environment is Environment.TEST
    assert settings.queue.batch_size == 7
    assert (
        "EMBED_ENV differs between the environment and .env: the environment wins."
        in settings.notes
    )


def test_an_explicit_environment_reads_nothing_else(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean / ".env").write_text("EMBED_JOB_BATCH_SIZE=7\n")
    monkeypatch.setenv("EMBED_JOB_MAX_ATTEMPTS", "9")

    settings = load_settings({"EMBED_ENV": "test"})

    assert (settings.queue.batch_size, settings.queue.max_attempts) == (2000, 3)


def test_a_missing_file_is_no_problem(clean: Path) -> None:
    assert load_settings().environment is Environment.LOCAL
    assert load_settings(dotenv=None).environment is Environment.LOCAL


def test_a_file_that_is_no_text_is_reported_in_a_sentence(clean: Path) -> None:
    (clean / ".env").write_bytes(b"EMBED_ENV=\xff\xfe\n")

    with pytest.raises(ConfigurationError, match=r"\.env cannot be read: it is not UTF-8 text\."):
        load_settings()


def test_settings_cannot_be_changed() -> None:
    settings = load_settings({})

    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.home = Path("elsewhere")  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.queue.batch_size = 1  # type: ignore[misc]
    assert isinstance(settings, Settings)
