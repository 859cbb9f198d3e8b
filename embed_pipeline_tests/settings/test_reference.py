from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from dotenv import dotenv_values

from embed_pipeline.settings import load_settings
from embed_pipeline.settings.reference import (
    DOCUMENT,
    EXAMPLE,
    configuration_markdown,
    env_example,
    reference,
    write_reference,
)

ROOT = Path(__file__).parents[2]
REMEDY = (
    "out of date; python -c 'from pathlib import Path; from embed_pipeline.settings import"
    " reference; reference.write_reference(Path())' brings it up to date"
)


@pytest.mark.parametrize(
    ("path", "expected"), [(DOCUMENT, configuration_markdown()), (EXAMPLE, env_example())]
)
def test_the_written_reference_is_up_to_date(path: Path, expected: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == expected, REMEDY


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
    }
    assert all(row.literal == "" for row in secrets)
    assert configuration_markdown().count("**Secret.**") == 6


def test_the_example_changes_nothing_until_it_is_uncommented() -> None:
    assert dotenv_values(stream=StringIO(env_example())) == {}


def test_the_defaults_that_the_example_shows_are_the_defaults() -> None:
    shown = {row.variable: row.literal for row in reference() if row.literal}

    assert load_settings(shown) == load_settings({"EMBED_ENV": "local"})


def test_write_reference_writes_both_files(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()

    write_reference(tmp_path)

    assert (tmp_path / EXAMPLE).read_text(encoding="utf-8") == env_example()
    assert (tmp_path / DOCUMENT).read_text(encoding="utf-8") == configuration_markdown()
