"""Nothing in the documentation leads nowhere: pages, anchors, commands, variables."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
import typer.main

from embed_pipeline.defs.build import build_definitions
from embed_pipeline.interfaces.cli.app import app
from embed_pipeline.settings import load_settings
from embed_pipeline.settings.load import KNOWN
from embed_pipeline_tests.docs.pages import PAGES, ROOT, anchors, links

OWN_VARIABLES = re.compile(r"\b(?:EMBED|EMBEDDING|REAPER)_[A-Z][A-Z_]*[A-Z]\b")
OF_TESTS = "EMBED_TEST_"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)

    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_named_exists(page: Path) -> None:
    named = set(re.findall(r"\bembed-pipeline ([a-z][a-z-]*)\b", page.read_text(encoding="utf-8")))
    command = typer.main.get_command(app)
    existing = set(getattr(command, "commands", {}))

    assert named - existing == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_that_is_named_exists(page: Path) -> None:
    named = set(OWN_VARIABLES.findall(page.read_text(encoding="utf-8")))

    assert {name for name in named - KNOWN if not name.startswith(OF_TESTS)} == set()


@pytest.fixture(scope="module")
def dagster_names() -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dagster about its own parameters
        settings = load_settings(
            {"EMBED_ENV": "local", "REAPER_DATABASE_URL": "postgresql://localhost/x"}
        )
        repository = build_definitions(settings).get_repository_def()
    return {
        *repository.job_names,
        *(sensor.name for sensor in repository.sensor_defs),
        *(schedule.name for schedule in repository.schedule_defs),
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_dagster_job_sensor_and_schedule_that_is_named_exists(
    page: Path, dagster_names: set[str]
) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?!test_)\w+_(?:job|sensor|schedule))`", text))

    assert named - dagster_names == set()


def test_every_page_is_reached_from_the_readme() -> None:
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in links(ROOT / "README.md")}

    assert {page for page in PAGES if page.parent == ROOT / "docs"} - linked == set()
