"""Load entities from a file: good rows are kept, bad ones are reported with their line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.entities.create import upsert_entities
from embed_pipeline.usecases.files.columns import ColumnChoice, ColumnPlan
from embed_pipeline.usecases.files.formats import BadRow, Row
from embed_pipeline.usecases.files.source import open_source
from embed_pipeline.worker.context import Services

PAGE = 500
PAGE_SIZE = 10 * 1024 * 1024
"""Characters after which a page ends before it has all its rows."""

MOST_LISTED = 20
"""Bad rows that a report lists, so that its size does not depend on the file; all are logged."""


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
    """The first of the refused rows."""
    place: str = "line"
    """What the number of a bad row counts."""
    ignored_columns: list[str] = field(default_factory=list)
    """Columns that no property of the entities needs."""

    def bad_rows(self) -> list[str]:
        """A sentence for each bad row that is listed, and one for the others."""
        listed = [f"{self.place} {row.line}: {row.reason}" for row in self.bad]
        more = self.refused - len(listed)
        return [*listed, f"and {more:,} more, each with a line in the log"] if more else listed


OnPage = Callable[[LoadReport], None]


def load_file(
    services: Services,
    path: Path,
    *,
    columns: ColumnChoice | None = None,
    file_format: str | None = None,
    on_page: OnPage = lambda report: None,
) -> LoadReport:
    """Upsert the entities of a file; loading it twice changes nothing. `-` is standard input.

    One page of rows is in memory at a time, whatever the size of a CSV or JSON Lines file.
    """
    with open_source(path, file_format=file_format) as (source, kind):
        choice = columns or ColumnChoice()
        plan = ColumnPlan(choice, services.graph.collection(choice.collection), place=source.name)
        rows = kind.read(source, plan.choose)
        return load_rows(services, rows, plan, place=kind.place, cells=kind.cells, on_page=on_page)


def load_rows(
    services: Services,
    rows: Iterable[Row | BadRow],
    plan: ColumnPlan,
    *,
    place: str,
    cells: bool = False,
    on_page: OnPage = lambda report: None,
) -> LoadReport:
    report = LoadReport(place=place)
    for page in _pages(rows):
        if not report.rows:
            _check_names(page, plan)
        report.rows += len(page)
        read = [row if isinstance(row, BadRow) else plan.entity(row, cells=cells) for row in page]
        bad = [row for row in read if isinstance(row, BadRow)]
        for row in bad:
            emit("load.row_refused", line=row.line, reason=row.reason)
        report.refused += len(bad)
        report.bad += bad[: MOST_LISTED - len(report.bad)]
        _upsert(services, [row for row in read if isinstance(row, NewEntity)], report)
        on_page(report)
    report.ignored_columns = plan.ignored
    return report


def _check_names(page: Sequence[Row | BadRow], plan: ColumnPlan) -> None:
    """Formats without a header are refused by the names that their first page has."""
    if names := {name: None for row in page if isinstance(row, Row) for name in row.values}:
        plan.choose(list(names))


def _pages(rows: Iterable[Row | BadRow]) -> Iterator[list[Row | BadRow]]:
    page: list[Row | BadRow] = []
    size = 0
    for row in rows:
        page.append(row)
        size += _size(row)
        if len(page) == PAGE or size >= PAGE_SIZE:
            yield page
            page, size = [], 0
    if page:
        yield page


def _size(row: Row | BadRow) -> int:
    if isinstance(row, BadRow):
        return len(row.reason)
    return sum(
        len(value) if isinstance(value, str) else sum(len(str(item)) for item in value)
        for value in row.values.values()
        if isinstance(value, str | list)
    )


def _upsert(services: Services, entities: list[NewEntity], report: LoadReport) -> None:
    if not entities:
        return
    made = upsert_entities(services.jobs, services.graph, entities, model=services.model)
    report.created += made.created
    report.changed += made.changed
    report.unchanged += made.unchanged
    report.new_jobs += made.jobs.new_jobs
    report.queued = report.queued and made.queued
