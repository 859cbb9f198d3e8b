"""CSV: a header with at least the name column; a cell that is a JSON list becomes a list."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from embed_pipeline.domain.entity import EntityMapping, NewEntity
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.row import (
    BadRow,
    Columns,
    Write,
    check_columns,
    entity_of,
    readable,
)

LONGEST_CELL = 10 * 1024 * 1024


def read_csv(path: Path, mapping: EntityMapping) -> Iterator[NewEntity | BadRow]:
    csv.field_size_limit(LONGEST_CELL)
    try:
        with readable(path), path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            if not reader.fieldnames:
                raise RequestError(f"{path} is empty: it needs a header and rows.")
            check_columns(path, reader.fieldnames, mapping)
            yield from _rows(reader, mapping)
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8 text.") from error
    except csv.Error as error:
        raise RequestError(f"{path} has a header that is not CSV: {error}.") from error


def _rows(reader: csv.DictReader[str], mapping: EntityMapping) -> Iterator[NewEntity | BadRow]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # After broken quoting the start of the next row is unknown. Only the inner reader has
            # counted this line.
            line = reader.reader.line_num
            yield BadRow(line=line, reason=f"{error}; the rest of the file was not read")
            return
        yield _entity(row, mapping, reader.line_num)


def _entity(
    row: dict[str | None, str | list[str] | None], mapping: EntityMapping, line: int
) -> NewEntity | BadRow:
    if None in row:
        return BadRow(line=line, reason="has more cells than the header")
    cells = {name: cell for name, cell in row.items() if name and isinstance(cell, str)}
    if len(cells) < len(row):
        return BadRow(line=line, reason="has fewer cells than the header")
    lists = set(mapping.text) - {mapping.name, mapping.entity_type, mapping.key}
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
    except RecursionError as error:
        raise ValueError("has a list with something else than strings") from error
    if not all(isinstance(item, str) for item in items):
        raise ValueError("has a list with something else than strings")
    return items


@contextmanager
def csv_writer(path: Path, columns: Columns) -> Iterator[Write]:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            writer.writerows({name: _written(row[name]) for name in columns} for row in rows)

        yield write


def _written(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
