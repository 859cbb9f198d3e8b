"""File formats, by the ending of the name: entities are read from them, tables written to them.

A row that cannot be read becomes a `BadRow` with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.csv_files import csv_writer, read_csv
from embed_pipeline.usecases.files.formats.jsonl_files import read_jsonl
from embed_pipeline.usecases.files.formats.parquet_files import parquet_writer, read_parquet
from embed_pipeline.usecases.files.formats.row import BadRow, Columns, Write

__all__ = ["FORMATS", "BadRow", "Columns", "Format", "Write", "format_of", "writer_of"]

Read = Callable[[Path, Collection], Iterator[NewEntity | BadRow]]
OpenWriter = Callable[[BinaryIO, Columns], AbstractContextManager[Write]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    read: Read
    write: OpenWriter | None = None
    place: str = "line"
    """What the number of a bad row counts."""


FORMATS: Mapping[str, Format] = {
    ".csv": Format(read=read_csv, write=csv_writer),
    ".jsonl": Format(read=read_jsonl),
    ".ndjson": Format(read=read_jsonl),
    ".parquet": Format(read=read_parquet, write=parquet_writer, place="row"),
}


def format_of(path: Path) -> Format:
    return FORMATS.get(path.suffix.lower()) or _refuse(path, FORMATS)


def writer_of(path: Path) -> OpenWriter:
    writers = {ending: each.write for ending, each in FORMATS.items() if each.write}
    return writers.get(path.suffix.lower()) or _refuse(path, writers)


def _refuse(path: Path, known: Iterable[str]) -> NoReturn:
    raise RequestError(
        f"{path} is of no known format; a name ends with one of: {', '.join(known)}."
    )
