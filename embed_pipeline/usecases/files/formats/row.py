"""What a row of any format becomes: an entity, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity, check_entities
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recipe import TextValue
from embed_pipeline.errors import RequestError

Columns = Mapping[str, type]
"""Names in order, each with the type of its values: str, int, bool or datetime; all may be None."""

Write = Callable[[Sequence[Mapping[str, Any]]], None]
"""Appends rows to a table."""

LONGEST_CELL = 10 * 1024 * 1024
LONGEST_ROW = 50 * 1024 * 1024
"""In bytes or characters, whichever the format counts. A longer row is a bad row."""

CELL_TOO_LONG = "has a cell longer than 10 MB"
ROW_TOO_LONG = "is longer than 50 MB"

PIECE = 1024 * 1024
"""How much of a line that is too long is in memory while its end is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    line: int
    reason: str


@contextmanager
def readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror or error}.") from error


def check_columns(path: Path, columns: Sequence[str], mapping: Collection) -> None:
    known = known_columns(mapping)
    if mapping.name_property not in columns:
        raise RequestError(
            f"{path} has no column {mapping.name_property!r}; it has: {', '.join(columns)}."
        )
    if repeated := sorted({column for column in columns if columns.count(column) > 1}):
        raise RequestError(f"{path} has columns of the same name: {', '.join(repeated)}.")
    if unknown := [column for column in columns if column not in known]:
        raise RequestError(
            f"{path} has columns that no mapped property has: {', '.join(unknown)}; "
            f"known are: {', '.join(sorted(known))}."
        )


def known_columns(mapping: Collection) -> set[str]:
    return {mapping.key, mapping.name_property, mapping.type_property, *mapping.text_properties}


def entity_of(
    values: Mapping[str, object], mapping: Collection, *, line: int
) -> NewEntity | BadRow:
    """From strings, lists of strings and None; a key may also be a whole number."""
    if any(_length(value) > LONGEST_CELL for value in values.values()):
        return BadRow(line=line, reason=CELL_TOO_LONG)
    try:
        entity = NewEntity(
            name=_text(values, mapping.name_property),
            entity_type=_text(values, mapping.type_property),
            properties={
                column: _value(column, values[column])
                for column in mapping.text_properties
                if column in values and column not in (mapping.name_property, mapping.type_property)
            },
            uid=_key(values.get(mapping.key)),
        )
        if not entity.name:
            return BadRow(line=line, reason=f"has no {mapping.name_property}")
        check_entities([entity], mapping=mapping)
    except (ValueError, RequestError) as error:
        return BadRow(line=line, reason=str(error).removesuffix("."))
    return entity


def _length(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(_length, value)) if isinstance(value, list) else 0


def _text(values: Mapping[str, object], column: str) -> str:
    value = values.get(column)
    if _is_missing(value):
        return ""
    if not isinstance(value, str):
        raise ValueError(f"has a {column} that is not a string")
    return value.strip()


def _key(value: object) -> EntityUid | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return EntityUid(str(value))
    if _is_missing(value):
        return None
    if not isinstance(value, str):
        raise ValueError("has a key that is neither a string nor a whole number")
    return EntityUid(value.strip()) if value.strip() else None


def _value(column: str, value: object) -> TextValue:
    if _is_missing(value):
        return None
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError(f"has {column} that are neither a string nor a list of strings")


def _is_missing(value: object) -> bool:
    # pandas writes a missing text as NaN, the only value that is not equal to itself.
    return value is None or value != value
