"""Parquet: columns are the mapped properties, lists are lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

from embed_pipeline.domain.entity import EntityMapping, NewEntity
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.arrow import arrow
from embed_pipeline.usecases.files.formats.row import BadRow, check_columns, entity_of, readable

BATCH = 500
BUFFER = 1024 * 1024


def read_parquet(path: Path, mapping: EntityMapping) -> Iterator[NewEntity | BadRow]:
    """A batch of rows in memory at a time; rows are numbered from 1."""
    pa = arrow()
    try:
        with (
            readable(path),
            path.open("rb") as file,
            closing(_opened(pa, file)) as table,
        ):
            check_columns(path, table.schema_arrow.names, mapping)
            number = 0
            for batch in table.iter_batches(batch_size=BATCH):
                for values in batch.to_pylist():
                    number += 1
                    yield entity_of(values, mapping, line=number)
    except pa.ArrowInvalid as error:
        reason = str(error).partition(".")[0]
        raise RequestError(f"{path} is no Parquet file, or is damaged: {reason}.") from error


def _opened(pa: Any, file: BinaryIO) -> Any:
    """Read as it goes: by itself pyarrow would take a whole row group into memory."""
    return pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
