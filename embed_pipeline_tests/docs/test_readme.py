"""What a newcomer does first: the README's own file, its own commands, in its order."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from embed_pipeline_tests.docs.pages import PAGES, ROOT, examples
from embed_pipeline_tests.interfaces.command_line import environment, run_program

README = ROOT / "README.md"
PROGRAM = ".venv/bin/embed-pipeline"


def commands() -> list[list[str]]:
    """The commands of the section on one's own file, as words."""
    (block,) = (block for block in examples(README, "console") if "books.csv" in block)
    return [shlex.split(line.removeprefix("$ ")) for line in block.strip().splitlines()]


def test_every_make_target_that_is_named_exists() -> None:
    named = {
        target
        for page in PAGES
        for target in re.findall(r"(?:`|^\$ )make ([a-z0-9-]+)", page.read_text("utf-8"), re.M)
    }
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    existing = set(re.findall(r"^([a-z0-9-]+):", rules, re.M))

    assert named - existing == set()


def test_make_offers_exactly_the_benchmarks_that_the_page_explains() -> None:
    command = ["make", "-s", "-o", ".venv-benchmarks/.installed", "benchmarks"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60).stdout
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    offered = re.findall(r"^  (\w+)$", shown, re.M)

    assert sorted(offered) == sorted(set(re.findall(r"python -m benchmarks\.(\w+)", page)))


def test_own_csv_is_searched_by_meaning_in_under_five_commands(tmp_path: Path) -> None:
    (file,) = examples(README, "csv")
    (tmp_path / "books.csv").write_text(file.lstrip(), encoding="utf-8")
    env = environment(tmp_path / "home", EMBED_ENV="local")

    install, *ours = commands()
    answers = [run_program(*words[1:], env=env, cwd=tmp_path) for words in ours]

    assert install == ["make", "install"]
    assert len(ours) < 4
    assert {words[0] for words in ours} == {PROGRAM}
    assert [answer.code for answer in answers] == [0] * len(ours)
    best = answers[-1].out.splitlines()[2]
    assert "Roadside Picnic" in best
