"""Files of entities, read a row at a time: what can be kept, and what is refused with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from embed_pipeline.domain.entity import EntityMapping, NewEntity
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.csv_rows import read_csv
from embed_pipeline.usecases.files.formats.jsonl_rows import read_jsonl
from embed_pipeline.usecases.files.formats.parquet_rows import read_parquet
from embed_pipeline.usecases.files.formats.row import BadRow

__all__ = ["FORMATS", "BadRow", "Format", "format_of"]

Read = Callable[[Path, EntityMapping], Iterator[NewEntity | BadRow]]


@dataclass(frozen=True, slots=True)
class Format:
    """`place` is what a row is found by in such a file."""

    read: Read
    place: str = "line"


FORMATS: Mapping[str, Format] = {
    ".csv": Format(read_csv),
    ".jsonl": Format(read_jsonl),
    ".ndjson": Format(read_jsonl),
    ".parquet": Format(read_parquet, "row"),
}


def format_of(path: Path) -> Format:
    """By the end of its name."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        known = ", ".join(FORMATS)
        raise RequestError(f"{path} is of no known format; a name ends with one of: {known}.")
    return found
