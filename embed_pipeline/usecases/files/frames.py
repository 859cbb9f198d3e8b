"""Entities from a pandas DataFrame, as from a file. pandas itself is not imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embed_pipeline.usecases.files.columns import ColumnChoice, ColumnPlan
from embed_pipeline.usecases.files.formats import Row
from embed_pipeline.usecases.files.load import PAGE, LoadReport, load_rows
from embed_pipeline.worker.context import Services


def load_frame(services: Services, frame: Any, columns: ColumnChoice) -> LoadReport:
    """Rows are numbered by their position, from 0. The index is not read."""
    plan = ColumnPlan(columns, services.graph.collection(columns.collection), place="The frame")
    named = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    chosen = plan.choose(list(named.columns))
    return load_rows(services, _rows(named[chosen]), plan, place="row")


def _rows(frame: Any) -> Iterator[Row]:
    for start in range(0, len(frame), PAGE):
        page = frame.iloc[start : start + PAGE].astype(object)
        records = page.where(page.notna(), None).to_dict("records")
        for number, values in enumerate(records, start):
            yield Row(line=number, values={name: _plain(value) for name, value in values.items()})


def _plain(value: Any) -> object:
    """Lists may be arrays, as Parquet files give them."""
    return value.tolist() if hasattr(value, "tolist") else value
