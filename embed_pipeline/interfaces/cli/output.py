"""The output of commands: a small table for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from rich.console import Console
from rich.table import Table

console = Console(markup=False, emoji=False)
"""Names and errors are printed literally: `[/b]` is a name, not markup."""


def show(facts: Mapping[str, Any], *, as_json: bool, title: str) -> None:
    """Facts as a two-column table, or as one JSON object."""
    if as_json:
        _write_json(facts)
        return
    console.print(title, style="bold")
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), _readable(value))
    console.print(table)


def show_rows(rows: Sequence[Mapping[str, Any]], *, as_json: bool, title: str, empty: str) -> None:
    """Rows of the same shape as a table, or as a JSON list."""
    if as_json:
        _write_json(rows)
        return
    if not rows:
        console.print(empty)
        return
    console.print(title, style="bold")
    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(_readable(value) for value in row.values()))
    console.print(table)


def say(sentence: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """A sentence, or the facts behind it as JSON."""
    if as_json:
        _write_json(facts)
    else:
        console.print(sentence, highlight=False, soft_wrap=True)


def report(sentence: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Like `say`, for a command that keeps running: one line of JSON each time, flushed."""
    if as_json:
        _write_json(facts, indent=None)
        sys.stdout.flush()
    else:
        say(sentence, facts, as_json=False)


def _write_json(answer: object, *, indent: int | None = 2) -> None:
    sys.stdout.write(json.dumps(answer, default=_plain, indent=indent) + "\n")


def _readable(value: object) -> str:
    match value:
        case None:
            return "–"
        case float():
            return f"{value:,.1f}"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S} UTC"
        case list() | tuple():
            return "\n".join(_readable(item) for item in value) or "–"
        case _:
            return str(value)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else str(value)
