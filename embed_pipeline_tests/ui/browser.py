"""Debian's Chromium, driven by playwright, which brings no browser of its own here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

PATIENCE_MS = 60_000
"""For the slowest page on a busy machine; a test waits no longer than its page needs."""

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def opened_browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=_chromium(), args=arguments)
        with browser:
            yield browser


def _chromium() -> str:
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.fail("The tests of the UI need Chromium: apt-get install chromium", pytrace=False)
