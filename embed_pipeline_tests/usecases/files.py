"""What the rows of a file become, without a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.usecases.files.columns import ColumnChoice, ColumnPlan
from embed_pipeline.usecases.files.formats import BadRow
from embed_pipeline.usecases.files.source import open_source


def rows_of(
    path: Path, mapping: Collection | None = None, **columns: str | tuple[str, ...]
) -> Iterator[NewEntity | BadRow]:
    with open_source(path, file_format=None) as (source, kind):
        choice = ColumnChoice(**columns)  # type: ignore[arg-type]
        plan = ColumnPlan(choice, mapping or Collection(), place=source.name)
        for row in kind.read(source, plan.choose):
            yield row if isinstance(row, BadRow) else plan.entity(row, cells=kind.cells)
