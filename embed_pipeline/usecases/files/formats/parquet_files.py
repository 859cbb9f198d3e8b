"""Parquet: only the columns that are needed are read. Needs pyarrow, an extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import IO, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from embed_pipeline.errors import RequestError, package_missing
from embed_pipeline.usecases.files.formats.parquet_pages import expansion
from embed_pipeline.usecases.files.formats.table import (
    CELL_TOO_LONG,
    LONGEST_CELL,
    LONGEST_ROW,
    ROW_TOO_LONG,
    BadRow,
    Choose,
    Columns,
    Row,
    Source,
    Write,
)

BATCH = 16
"""Few rows, because the length of their strings is known only after decoding."""
BUFFER = 1024 * 1024
SUSPICIOUS = 20
"""Texts compress by less; what was compressed by more may be one long string many times."""
MOST_EXPANDED = 128 * 1024 * 1024
"""How many bytes the strings of a column's dictionary may become when they are written out."""
MOST_ITEMS = 100_000_000
"""In one row group: all of them may be in one row, and each takes four bytes."""

TEXTS = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}


def read_parquet(source: Source, choose: Choose) -> Iterator[Row | BadRow]:
    """A few rows in memory at a time, by their bytes; rows are numbered from 1."""
    pa = _pyarrow()
    try:
        with closing(_opened(pa, source.file)) as table:
            chosen = choose(table.schema_arrow.names)
            _check_types(pa, source, [table.schema_arrow.field(name) for name in chosen])
            number = 1
            for batch in table.iter_batches(batch_size=BATCH, columns=list(chosen)):
                yield from _rows(pa, batch, first=number)
                number += batch.num_rows
    except pa.ArrowInvalid as error:
        reason = str(error).partition(".")[0]
        raise RequestError(f"{source.name} is no Parquet file, or is damaged: {reason}.") from error


def _rows(pa: Any, batch: Any, *, first: int) -> Iterator[Row | BadRow]:
    """Sizes are checked before any value becomes a Python object."""
    types = str(batch.schema.types)
    is_dense = "dictionary" not in types and "view" not in types
    if is_dense and batch.nbytes <= LONGEST_CELL:
        for line, values in enumerate(batch.to_pylist(), first):
            yield Row(line=line, values=values)
        return
    sizes = np.array([_sizes(pa, column) for column in batch.columns])
    cells, rows = sizes.max(axis=0).tolist(), sizes.sum(axis=0).tolist()
    start = 0
    while start < batch.num_rows:
        if cells[start] > LONGEST_CELL or rows[start] > LONGEST_ROW:
            reason = CELL_TOO_LONG if cells[start] > LONGEST_CELL else ROW_TOO_LONG
            yield BadRow(line=first + start, reason=reason)
            start += 1
            continue
        end, size = start + 1, rows[start]
        while end < batch.num_rows and size + rows[end] <= LONGEST_CELL:
            size += rows[end]
            end += 1
        for line, values in enumerate(batch.slice(start, end - start).to_pylist(), first + start):
            yield Row(line=line, values=values)
        start = end


def _sizes(pa: Any, array: Any) -> npt.NDArray[np.int64]:
    """Bytes of each value; a list counts 8 more for each of its items."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _numbers(pa.array(_sizes(pa, array.dictionary)).take(array.indices))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = np.cumsum(_numbers(pa.compute.list_value_length(array)))
        sums = np.concatenate([[0], np.cumsum(_sizes(pa, array.flatten()) + 8)])
        return np.diff(sums[ends], prepend=0)
    if str(kind) in TEXTS:
        return _numbers(pa.compute.binary_length(array.cast(pa.large_binary())))
    return np.full(len(array), 8)


def _numbers(array: Any) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = array.fill_null(0).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)


def _check_types(pa: Any, source: Source, columns: Sequence[Any]) -> None:
    """Refuse columns that can hold no text, and whose size only reading them would show."""
    refused = []
    for field in columns:
        kind = field.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            kind = kind.value_type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        plain = pa.types.is_primitive(kind) or pa.types.is_null(kind)
        if not (plain or str(kind) in TEXTS):
            refused.append(field.name)
    if refused:
        raise RequestError(
            f"{source.name} has columns that are neither strings nor lists of strings: "
            f"{', '.join(refused)}."
        )


@contextmanager
def parquet_writer(file: BinaryIO, columns: Columns) -> Iterator[Write]:
    pa = _pyarrow()
    kinds = {
        str: pa.string(),
        int: pa.int64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("ms", tz="UTC"),
    }
    # Declared, because the first rows may hold nothing but nulls in a column.
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with pa.parquet.ParquetWriter(file, schema) as writer:

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            plain = [{name: row[name] for name in columns} for row in rows]
            writer.write_table(pa.Table.from_pylist(plain, schema=schema))

        yield write


def _opened(pa: Any, file: IO[bytes]) -> Any:
    """Read in small buffers: by default pyarrow takes a whole row group into memory.

    Suspicious columns keep their strings in dictionaries. Otherwise one long string is copied for
    each of its uses, and a file of 2 kB takes gigabytes. The other columns do without: pyarrow
    collects in a dictionary all the strings of a row group.
    """
    metadata = pa.parquet.read_metadata(file)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
    suspicious = {chunk.path_in_schema for chunk in chunks if _is_suspicious(pa, file, chunk)}
    file.seek(0)
    return pa.parquet.ParquetFile(
        file,
        metadata=metadata,
        read_dictionary=sorted(suspicious),
        pre_buffer=False,
        buffer_size=BUFFER,
    )


def _is_suspicious(pa: Any, file: IO[bytes], chunk: Any) -> bool:
    if chunk.physical_type != "BYTE_ARRAY":
        return False
    is_list = "." in chunk.path_in_schema
    if is_list and chunk.num_values > MOST_ITEMS:
        raise pa.ArrowInvalid(f"a list column has {chunk.num_values} items in one row group")
    try:
        expanded = expansion(pa, file, chunk, most_values=None if is_list else BATCH)
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    is_strongly_compressed = (
        chunk.total_uncompressed_size > SUSPICIOUS * chunk.total_compressed_size
    )
    return is_strongly_compressed or expanded > MOST_EXPANDED


def _pyarrow() -> Any:
    """Imported only for a Parquet file."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.compute  # type: ignore[import-untyped]
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise package_missing("A Parquet file", "pyarrow", extra="parquet") from error
    return pa
