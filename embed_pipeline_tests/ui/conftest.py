from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from embed_pipeline_tests.ui.browser import PATIENCE_MS, opened_browser
from embed_pipeline_tests.ui.control_room import ControlRoom, opened_control_room
from embed_pipeline_tests.ui.pictures import Pictures


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with opened_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new profile: nothing is remembered from another test."""
    with browser.new_context(
        viewport={"width": 1440, "height": 900},
        locale="en-US",
        timezone_id="UTC",
        color_scheme="light",
        reduced_motion="reduce",
    ) as profile:
        profile.set_default_timeout(PATIENCE_MS)
        yield profile.new_page()


@pytest.fixture(scope="session")
def control_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlRoom]:
    """One Dagster for all tests: it takes longer to start than most of them to run."""
    with opened_control_room(tmp_path_factory.mktemp("control_room")) as room:
        yield room


@pytest.fixture
def pictures(tmp_path: Path) -> Pictures:
    return Pictures.of(tmp_path)
