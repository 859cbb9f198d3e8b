"""Load entities from a file: good rows are kept, bad ones are reported with their line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.telemetry import emit
from embed_pipeline.usecases.entities.create import upsert_entities
from embed_pipeline.usecases.files.formats import BadRow, format_of
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

    def bad_rows(self) -> list[str]:
        """A sentence for each bad row that is listed, and one for the others."""
        listed = [f"{self.place} {row.line}: {row.reason}" for row in self.bad]
        more = self.refused - len(listed)
        return [*listed, f"and {more:,} more, each with a line in the log"] if more else listed


def load_file(
    services: Services, path: Path, *, on_page: Callable[[LoadReport], None] = lambda report: None
) -> LoadReport:
    """Upsert the entities of a CSV, JSON Lines or Parquet file; loading it twice changes nothing.

    One page of rows is in memory at a time, whatever the size of the file and of its rows.
    """
    kind = format_of(path)
    report = LoadReport(place=kind.place)
    for page in _pages(kind.read(path, services.graph.collections[0])):
        report.rows += len(page)
        bad = [row for row in page if isinstance(row, BadRow)]
        for row in bad:
            emit("load.row_refused", line=row.line, reason=row.reason)
        report.refused += len(bad)
        report.bad += bad[: MOST_LISTED - len(report.bad)]
        _upsert(services, [row for row in page if isinstance(row, NewEntity)], report)
        on_page(report)
    return report


def _pages(rows: Iterable[NewEntity | BadRow]) -> Iterator[list[NewEntity | BadRow]]:
    page: list[NewEntity | BadRow] = []
    size = 0
    for row in rows:
        page.append(row)
        size += _size(row)
        if len(page) == PAGE or size >= PAGE_SIZE:
            yield page
            page, size = [], 0
    if page:
        yield page


def _size(row: NewEntity | BadRow) -> int:
    if isinstance(row, BadRow):
        return len(row.reason)
    values = [row.name, *(value or "" for value in row.properties.values())]
    return sum(len(value) if isinstance(value, str) else sum(map(len, value)) for value in values)


def _upsert(services: Services, entities: list[NewEntity], report: LoadReport) -> None:
    if not entities:
        return
    made = upsert_entities(services.jobs, services.graph, entities, model=services.model)
    report.created += made.created
    report.changed += made.changed
    report.unchanged += made.unchanged
    report.new_jobs += made.jobs.new_jobs
    report.queued = report.queued and made.queued
