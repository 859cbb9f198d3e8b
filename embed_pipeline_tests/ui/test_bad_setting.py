"""A setting that cannot be used ends in our sentence, not in a riddle."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from embed_pipeline_tests.defs.commands import Homes
from embed_pipeline_tests.defs.dev_server import DevServer, dev_server
from embed_pipeline_tests.ui.pictures import Pictures

SENTENCE = "EMBED_JOB_RETENTION_DAYS must be a whole number of days from 7 to 30, got '99'."


@pytest.mark.ui
def test_bad_setting_is_reported_in_our_words(
    page: Page, tmp_path: Path, pictures: Pictures
) -> None:
    bad = {"EMBED_ENV": "test", "EMBED_JOB_RETENTION_DAYS": "99"}
    with dev_server(Homes.below(tmp_path), DevServer.refuses_the_code, **bad) as server:
        page.goto(f"{server.url}/deployment/locations")
        page.get_by_role("button", name="View error").click()

        heading = page.get_by_role("dialog").get_by_role("heading", name=SENTENCE)
        expect(heading).to_be_visible()
        pictures.take(heading, "bad_setting")
