"""What every format reads: rows of named values, with their line, and the limits of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

Columns = Mapping[str, type]
"""Names in order, each with the type of its values: str, int, bool or datetime; all may be None."""

Write = Callable[[Sequence[Mapping[str, Any]]], None]
"""Appends rows to a table."""

Choose = Callable[[Sequence[str]], Sequence[str]]
"""From the columns of a file to those that are read; refuses a file that lacks some."""

LONGEST_CELL = 10 * 1024 * 1024
LONGEST_ROW = 50 * 1024 * 1024
"""In bytes or characters, whichever the format counts. A longer row is a bad row."""

CELL_TOO_LONG = "has a cell longer than 10 MB"
ROW_TOO_LONG = "is longer than 50 MB"

PIECE = 1024 * 1024
"""How much of a line that is too long is in memory while its end is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An opened file; `name` is for sentences."""

    name: str
    file: IO[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    line: int
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    line: int
    reason: str
