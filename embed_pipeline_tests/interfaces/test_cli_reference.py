"""The reference of the command line: written down, complete, and true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from embed_pipeline.interfaces.cli.reference import DOCUMENT, cli_markdown, write_reference
from embed_pipeline_tests.interfaces.conftest import CommandLine

ROOT = Path(__file__).parents[2]
REMEDY = "out of date; python -m embed_pipeline.interfaces.cli.reference brings it up to date"
SECTIONS = dict(
    re.findall(
        r"^## embed-pipeline (.+?)\n(.*?)(?=^## |\Z)", cli_markdown(), re.DOTALL | re.MULTILINE
    )
)


def test_the_written_reference_is_up_to_date() -> None:
    assert (ROOT / DOCUMENT).read_text(encoding="utf-8") == cli_markdown(), REMEDY


def test_the_reference_is_written_where_it_is_read(tmp_path: Path) -> None:
    (tmp_path / DOCUMENT.parent).mkdir()

    write_reference(tmp_path)

    assert (tmp_path / DOCUMENT).read_text(encoding="utf-8") == cli_markdown()


@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("elsewhere.md", 2)])
def test_generator_that_is_asked_for_anything_writes_nothing(
    tmp_path: Path, word: str, code: int
) -> None:
    (tmp_path / DOCUMENT.parent).mkdir()
    module = "embed_pipeline.interfaces.cli.reference"

    ended = subprocess.run(
        [sys.executable, "-m", module, word], cwd=tmp_path, capture_output=True, timeout=60
    )

    assert (ended.returncode, (tmp_path / DOCUMENT).exists()) == (code, False)


def test_every_command_of_the_help_has_its_section(cli: CommandLine) -> None:
    words = set(cli("--help").out.split()) | set(cli("reaper", "--help").out.split())

    assert {path.split()[-1] for path in SECTIONS} <= words
    assert len(SECTIONS) >= 22


@pytest.mark.parametrize("path", SECTIONS)
def test_the_help_at_the_terminal_says_the_same(cli: CommandLine, path: str) -> None:
    shown = cli(*path.split(), "--help").out
    flat = " ".join(re.sub(r"[│─╭╮╰╯]", " ", shown).split())

    options = set(re.findall(r"`(--[a-z-]+)`", SECTIONS[path]))
    first = SECTIONS[path].split("```")[2].strip().partition("\n")[0]
    assert first.replace("`", "") in flat.replace("`", "")
    assert {option for option in options if option not in flat} == set()
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", flat)) - {"--help"} <= set(
        re.findall(r"--[a-z-]+", SECTIONS[path])
    )
