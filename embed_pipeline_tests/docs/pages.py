"""The documentation as the tests read it: pages, their fenced examples, their links."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def examples(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language, each moved down to its line, for tracebacks."""
    text = page.read_text(encoding="utf-8")
    return [
        "\n" * text.count("\n", 0, found.start(1)) + textwrap.dedent(found.group(1))
        for found in re.finditer(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    ]


def links(page: Path) -> list[str]:
    """Targets inside the repository, without those of code."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def run_examples(page: Path, **given: object) -> dict[str, object]:
    """All Python of a page, from top to bottom, as one module; the names that it leaves.

    `given` are names that the page leaves to its reader.
    """
    names: dict[str, object] = {"__name__": page.stem, **given}
    for source in examples(page, "python"):
        exec(compile(source, str(page), "exec"), names)
    return names
