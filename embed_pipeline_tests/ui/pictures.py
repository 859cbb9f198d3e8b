"""Screenshots: for the documentation when asked for, else only to look at after a failure."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page

FOLDER = "EMBED_TEST_SCREENSHOTS"
"""Names the folder to write them to: `EMBED_TEST_SCREENSHOTS=docs/images make test-ui`."""


@dataclass(frozen=True, slots=True)
class Pictures:
    folder: Path

    @classmethod
    def of(cls, otherwise: Path) -> Pictures:
        folder = Path(os.environ.get(FOLDER) or otherwise)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    def take(self, seen: Page | Locator, name: str) -> None:
        """A page, or a part of it; what is on it must have been waited for.

        Nothing of the machine may be in it: a stack with its paths is no picture for others.
        """
        page = seen if isinstance(seen, Page) else seen.page
        page.mouse.move(0, 0)
        page.evaluate("document.fonts.ready")
        seen.screenshot(path=self.folder / f"{name}.png", animations="disabled")
