"""Tables into files, some rows at a time: CSV and Parquet, by the end of the name."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.arrow import arrow

Columns = Mapping[str, type]
"""Names in order, each with what its values are: str, int, bool or datetime; all may be None."""

Row = Mapping[str, Any]
Write = Callable[[Sequence[Row]], None]


@contextmanager
def writing(path: Path, columns: Columns, *, overwrite: bool) -> Iterator[Write]:
    """The file appears whole, at the end of the block, or not at all."""
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        known = ", ".join(_WRITERS)
        raise RequestError(f"{path} is of no known format; a name ends with one of: {known}.")
    if path.exists() and not overwrite:
        raise RequestError(f"{path} is there already: choose another name, or say --overwrite.")
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with writer(unfinished, columns) as write:
            yield write
        unfinished.replace(path)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextmanager
def _csv_writer(path: Path, columns: Columns) -> Iterator[Write]:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()

        def write(rows: Sequence[Row]) -> None:
            for row in rows:
                writer.writerow({name: _cell(row[name]) for name in columns})

        yield write


def _cell(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


@contextmanager
def _parquet_writer(path: Path, columns: Columns) -> Iterator[Write]:
    pa = arrow()
    kinds = {
        str: pa.string(),
        int: pa.int64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("ms", tz="UTC"),
    }
    # Said beforehand: the first rows may hold nothing but nulls in a column.
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with pa.parquet.ParquetWriter(path, schema) as writer:

        def write(rows: Sequence[Row]) -> None:
            plain = [{name: row[name] for name in columns} for row in rows]
            writer.write_table(pa.Table.from_pylist(plain, schema=schema))

        yield write


_WRITERS: Mapping[str, Callable[[Path, Columns], AbstractContextManager[Write]]] = {
    ".csv": _csv_writer,
    ".parquet": _parquet_writer,
}
