"""The reference pages, generated from the code. `make docs` writes them; a test compares them.

This package is not part of the wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate.cli import cli_markdown
from docs.generate.configuration import collections_schema, configuration_markdown, env_example
from docs.generate.logs import logs_markdown
from docs.generate.mcp import mcp_markdown

PAGES: Mapping[Path, Callable[[], str]] = {
    Path("docs/cli.md"): cli_markdown,
    Path("docs/mcp.md"): mcp_markdown,
    Path("docs/logs.md"): logs_markdown,
    Path("docs/configuration.md"): configuration_markdown,
    Path(".env.example"): env_example,
    Path("deploy/collections.schema.json"): collections_schema,
}


def write_pages(root: Path) -> None:
    """Write all pages below `root`, the folder of the project."""
    for path, generate in PAGES.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(generate(), encoding="utf-8")
