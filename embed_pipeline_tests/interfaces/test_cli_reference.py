"""The reference of the command line: written down, complete, and true."""

from __future__ import annotations

import re

import pytest

from docs.generate.cli import cli_markdown
from embed_pipeline_tests.interfaces.conftest import CommandLine

SECTIONS = dict(
    re.findall(
        r"^## embed-pipeline (.+?)\n(.*?)(?=^## |\Z)", cli_markdown(), re.DOTALL | re.MULTILINE
    )
)


def test_every_command_of_the_help_has_its_section(cli: CommandLine) -> None:
    groups = ((), ("reaper",), ("collection",))
    words = {word for group in groups for word in cli(*group, "--help").out.split()}

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
