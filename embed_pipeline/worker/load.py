"""Load entities from a CSV file: good rows are kept, bad ones are told with their line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from embed_pipeline.errors import RequestError
from embed_pipeline.model.entity import EntityMapping, NewEntity, TextValue, check_entities
from embed_pipeline.model.job import EntityUid
from embed_pipeline.telemetry import emit
from embed_pipeline.worker.create import upsert_entities
from embed_pipeline.worker.tools import Tools

PAGE = 500
LONGEST_CELL = 10 * 1024 * 1024
MOST_TOLD = 20
"""Bad rows that a report carries; the log has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    line: int
    reason: str


@dataclass(slots=True, kw_only=True)
class LoadReport:
    rows: int = 0
    created: int = 0
    changed: int = 0
    unchanged: int = 0
    new_jobs: int = 0
    queued: bool = True
    refused: int = 0
    bad: list[BadRow] = field(default_factory=list)
    """The first of the refused rows, so that memory does not follow the file."""


def load_csv(
    tools: Tools, path: Path, *, on_page: Callable[[LoadReport], None] = lambda report: None
) -> LoadReport:
    """Upsert the file's entities page by page; loading it again changes nothing.

    Memory is bounded by a page, whatever the size of the file.
    """
    report = LoadReport()
    rows = read_csv(path, tools.graph.mapping)
    while page := list(islice(rows, PAGE)):
        report.rows += len(page)
        bad = [row for row in page if isinstance(row, BadRow)]
        for row in bad:
            emit("load.row_refused", line=row.line, reason=row.reason)
        report.refused += len(bad)
        report.bad += bad[: MOST_TOLD - len(report.bad)]
        _upsert(tools, [row for row in page if isinstance(row, NewEntity)], report)
        on_page(report)
    return report


def _upsert(tools: Tools, entities: list[NewEntity], report: LoadReport) -> None:
    if not entities:
        return
    made = upsert_entities(tools.jobs, tools.graph, entities, model=tools.model)
    report.created += made.created
    report.changed += made.changed
    report.unchanged += made.unchanged
    report.new_jobs += made.jobs.new_jobs
    report.queued = report.queued and made.queued


def read_csv(path: Path, mapping: EntityMapping) -> Iterator[NewEntity | BadRow]:
    """A header with at least the name column; a cell that is a JSON list becomes a list."""
    csv.field_size_limit(LONGEST_CELL)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            _check_header(path, reader.fieldnames, mapping)
            yield from _rows(reader, mapping)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path} is not UTF-8 text.") from error
    except csv.Error as error:
        raise RequestError(f"{path} has a header that is not CSV: {error}.") from error


def _check_header(path: Path, header: Sequence[str] | None, mapping: EntityMapping) -> None:
    if not header:
        raise RequestError(f"{path} is empty: it needs a header and rows.")
    known = {mapping.key, mapping.name, mapping.entity_type, *mapping.text}
    if mapping.name not in header:
        raise RequestError(f"{path} has no column {mapping.name!r}; it has: {', '.join(header)}.")
    if repeated := sorted({column for column in header if header.count(column) > 1}):
        raise RequestError(f"{path} has columns of the same name: {', '.join(repeated)}.")
    if unknown := [column for column in header if column not in known]:
        raise RequestError(
            f"{path} has columns that no mapped property has: {', '.join(unknown)}; "
            f"known are: {', '.join(sorted(known))}."
        )


def _rows(reader: csv.DictReader[str], mapping: EntityMapping) -> Iterator[NewEntity | BadRow]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # Where the quoting is broken nobody can tell where the next row begins, and only the
            # inner reader has counted this one.
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
    name = cells[mapping.name].strip()
    if not name:
        return BadRow(line=line, reason=f"has no {mapping.name}")
    try:
        values = {
            column: _value(cells[column])
            for column in mapping.text
            if column in cells and column not in (mapping.name, mapping.entity_type)
        }
    except ValueError as error:
        return BadRow(line=line, reason=str(error))
    entity = NewEntity(
        name=name,
        entity_type=cells.get(mapping.entity_type, "").strip(),
        properties=values,
        uid=EntityUid(uid) if (uid := cells.get(mapping.key, "").strip()) else None,
    )
    try:
        check_entities([entity], mapping=mapping)
    except RequestError as error:
        return BadRow(line=line, reason=str(error).removesuffix("."))
    return entity


def _value(cell: str) -> TextValue:
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
    return tuple(items)
