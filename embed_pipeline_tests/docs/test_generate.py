"""The reference pages are what the code says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import PAGES, write_pages

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_the_page_is_up_to_date(path: Path) -> None:
    written = (ROOT / path).read_text(encoding="utf-8")

    assert written == PAGES[path](), "out of date: `make docs` writes it again"


def test_all_pages_are_written(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()

    write_pages(tmp_path)

    assert {path: (tmp_path / path).read_text(encoding="utf-8") for path in PAGES} == {
        path: generate() for path, generate in PAGES.items()
    }


@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("elsewhere.md", 2)])
def test_generator_with_an_argument_writes_nothing(tmp_path: Path, word: str, code: int) -> None:
    (tmp_path / "docs").mkdir()

    ended = subprocess.run(
        [sys.executable, "-m", "docs.generate", word],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )

    assert ended.returncode == code
    assert not any((tmp_path / path).exists() for path in PAGES)
