"""File formats, one module each: rows are read from them, tables written to them.

A row that cannot be read becomes a `BadRow` with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.csv_files import csv_writer, read_csv, read_tsv
from embed_pipeline.usecases.files.formats.excel_files import read_excel
from embed_pipeline.usecases.files.formats.json_files import read_json
from embed_pipeline.usecases.files.formats.jsonl_files import read_jsonl
from embed_pipeline.usecases.files.formats.parquet_files import parquet_writer, read_parquet
from embed_pipeline.usecases.files.formats.table import (
    BadRow,
    Choose,
    Columns,
    Row,
    Source,
    Write,
)

__all__ = ["FORMATS", "BadRow", "Columns", "Format", "Row", "Write", "format_of", "writer_of"]

Read = Callable[[Source, Choose], Iterator[Row | BadRow]]
OpenWriter = Callable[[BinaryIO, Columns], AbstractContextManager[Write]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    read: Read
    write: OpenWriter | None = None
    place: str = "line"
    """What the number of a bad row counts."""
    cells: bool = False
    """It has no lists, so they are written into cells as JSON."""
    seeks: bool = False
    """It is not read from the beginning to the end."""


FORMATS: Mapping[str, Format] = {
    "csv": Format(read=read_csv, write=csv_writer, cells=True),
    "tsv": Format(read=read_tsv, cells=True),
    "json": Format(read=read_json, place="row"),
    "jsonl": Format(read=read_jsonl),
    "ndjson": Format(read=read_jsonl),
    "xlsx": Format(read=read_excel, place="row", cells=True, seeks=True),
    "parquet": Format(read=read_parquet, write=parquet_writer, place="row", seeks=True),
}


def format_of(path: Path, name: str | None = None) -> Format:
    """By the ending of the name before `.gz`, unless the format is named."""
    if name is not None:
        return FORMATS.get(name.lower().lstrip(".")) or _refuse(f"The format {name!r}", FORMATS)
    if path.name == "-":
        raise RequestError(
            f"Standard input has no name to tell its format: --format {', '.join(FORMATS)}."
        )
    whole = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return FORMATS.get(whole.suffix.lower().lstrip(".")) or _refuse(str(path), FORMATS)


def writer_of(path: Path) -> OpenWriter:
    writers = {ending: each.write for ending, each in FORMATS.items() if each.write}
    return writers.get(path.suffix.lower().lstrip(".")) or _refuse(str(path), writers)


def _refuse(what: str, known: Collection[str]) -> NoReturn:
    endings = ", ".join(f".{ending}" for ending in known)
    raise RequestError(f"{what} is of no known format; a name ends with one of: {endings}.")
