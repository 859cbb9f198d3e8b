"""CSV: a header with at least the name column; a cell that is a JSON list becomes a list."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.row import (
    CELL_TOO_LONG,
    LONGEST_CELL,
    LONGEST_ROW,
    PIECE,
    ROW_TOO_LONG,
    BadRow,
    Columns,
    Write,
    check_columns,
    entity_of,
    readable,
)


class _RowTooLong(csv.Error):
    pass


class _Lines(Iterator[str]):
    """The lines of a file, for a csv reader; no more than the longest row is held in memory."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._length = self._quotes = 0
        self.number = 0
        """Lines read so far; the csv reader does not count those that it never sees."""

    def start_row(self) -> None:
        self._length = self._quotes = 0

    @property
    def inside_quotes(self) -> bool:
        """Whether the next line continues a quoted cell of this row."""
        return self._quotes % 2 == 1

    def __next__(self) -> str:
        line = self._file.readline(LONGEST_ROW - self._length + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._count(line)
        if self._length <= LONGEST_ROW:
            return line
        while line and not line.endswith(("\n", "\r")):
            line = self._file.readline(PIECE)
            self._count(line)
        raise _RowTooLong(ROW_TOO_LONG)

    def _count(self, part: str) -> None:
        self._length += len(part)
        self._quotes += part.count('"')


def read_csv(path: Path, mapping: Collection) -> Iterator[NewEntity | BadRow]:
    csv.field_size_limit(LONGEST_CELL)
    try:
        with readable(path), path.open(newline="", encoding="utf-8-sig") as file:
            lines = _Lines(file)
            reader = csv.DictReader(lines, strict=True)
            if not reader.fieldnames:
                raise RequestError(f"{path} is empty: it needs a header and rows.")
            check_columns(path, reader.fieldnames, mapping)
            yield from _rows(reader, lines, mapping)
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8 text.") from error
    except csv.Error as error:
        raise RequestError(f"{path} has a header that is not CSV: {error}.") from error


def _rows(
    reader: csv.DictReader[str], lines: _Lines, mapping: Collection
) -> Iterator[NewEntity | BadRow]:
    while True:
        lines.start_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # The csv module tells a cell that is too long from broken quoting by its words alone.
            cell = str(error).startswith("field larger than field limit")
            reason = CELL_TOO_LONG if cell else str(error)
            if lines.inside_quotes or not (cell or isinstance(error, _RowTooLong)):
                # The start of the next row is unknown.
                reason += "; the rest of the file was not read"
                yield BadRow(line=lines.number, reason=reason)
                return
            yield BadRow(line=lines.number, reason=reason)
        else:
            yield _entity(row, mapping, lines.number)


def _entity(
    row: dict[str | None, str | list[str] | None], mapping: Collection, line: int
) -> NewEntity | BadRow:
    if None in row:
        return BadRow(line=line, reason="has more cells than the header")
    cells = {name: cell for name, cell in row.items() if name and isinstance(cell, str)}
    if len(cells) < len(row):
        return BadRow(line=line, reason="has fewer cells than the header")
    lists = set(mapping.text_properties) - {
        mapping.name_property,
        mapping.type_property,
        mapping.key,
    }
    try:
        values = {name: _cell(cell) if name in lists else cell for name, cell in cells.items()}
    except ValueError as error:
        return BadRow(line=line, reason=str(error))
    return entity_of(values, mapping, line=line)


def _cell(cell: str) -> object:
    text = cell.strip()
    if not text.startswith("["):
        return text
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"has a list that is not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        # A list in lists, or a number: Python refuses to parse more than 4,300 digits.
        raise ValueError("has a list with something else than strings") from error
    if not all(isinstance(item, str) for item in items):
        raise ValueError("has a list with something else than strings")
    return items


@contextmanager
def csv_writer(file: BinaryIO, columns: Columns) -> Iterator[Write]:
    with TextIOWrapper(file, newline="", encoding="utf-8") as text:
        writer = csv.DictWriter(text, list(columns))
        writer.writeheader()

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            writer.writerows({name: _written(row[name]) for name in columns} for row in rows)

        yield write


def _written(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
