"""Parquet: columns are the mapped properties, lists are lists. Needs pyarrow, an extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from embed_pipeline.domain.entity import EntityMapping, NewEntity
from embed_pipeline.errors import ConfigurationError, RequestError
from embed_pipeline.usecases.files.formats.row import (
    BadRow,
    Columns,
    Write,
    check_columns,
    entity_of,
    readable,
)

BATCH = 500
BUFFER = 1024 * 1024


def read_parquet(path: Path, mapping: EntityMapping) -> Iterator[NewEntity | BadRow]:
    """A batch of rows in memory at a time; rows are numbered from 1."""
    pa = _pyarrow()
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


@contextmanager
def parquet_writer(path: Path, columns: Columns) -> Iterator[Write]:
    pa = _pyarrow()
    kinds = {
        str: pa.string(),
        int: pa.int64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("ms", tz="UTC"),
    }
    # Declared, because the first rows may hold nothing but nulls in a column.
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with pa.parquet.ParquetWriter(path, schema) as writer:

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            plain = [{name: row[name] for name in columns} for row in rows]
            writer.write_table(pa.Table.from_pylist(plain, schema=schema))

        yield write


def _opened(pa: Any, file: BinaryIO) -> Any:
    """Read in small buffers: by default pyarrow takes a whole row group into memory."""
    return pa.parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)


def _pyarrow() -> Any:
    """Imported only for a Parquet file."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise ConfigurationError(
            ["Parquet files need pyarrow: pip install 'embed-pipeline[parquet]'."]
        ) from error
    return pa
