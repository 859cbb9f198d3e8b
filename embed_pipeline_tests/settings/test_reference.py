from __future__ import annotations

from io import StringIO

from dotenv import dotenv_values

from docs.generate.configuration import configuration_markdown, env_example, reference
from embed_pipeline.settings import load_settings


def test_every_variable_has_its_words() -> None:
    for row in reference():
        assert row.meaning.endswith(".")
        assert row.allowed
        assert row.default


def test_secrets_are_marked_and_have_no_example_value() -> None:
    secrets = [row for row in reference() if row.secret]

    assert {row.variable for row in secrets} == {
        "OPENAI_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "EMBED_QUEUE_PASSWORD",
        "EMBED_GRAPH_PASSWORD",
        "NEO4J_PASSWORD",
        "REAPER_DATABASE_URL",
        "EMBED_MCP_TOKEN",
    }
    assert all(row.literal == "" for row in secrets)
    assert configuration_markdown().count("**Secret.**") == 7


def test_the_example_changes_nothing_until_it_is_uncommented() -> None:
    assert dotenv_values(stream=StringIO(env_example())) == {}


def test_the_defaults_that_the_example_shows_are_the_defaults() -> None:
    shown = {row.variable: row.literal for row in reference() if row.literal}

    assert load_settings(shown) == load_settings({"EMBED_ENV": "local"})
