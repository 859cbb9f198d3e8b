"""Which column of a file is what: name, type, key and texts of an entity.

Without a choice the columns are named as the mapped properties. What no property needs is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity, check_entities
from embed_pipeline.domain.job import EntityUid
from embed_pipeline.domain.recipe import TextValue
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.table import CELL_TOO_LONG, LONGEST_CELL, BadRow, Row

MOST_NAMED = 50
"""Columns that a sentence or a report names, so that its size does not depend on the file."""

_USUAL = {
    "--name": ("name", "title", "label", "headline", "subject"),
    "--text": ("description", "text", "body", "content", "abstract", "summary", "notes", "bio"),
    "--type": ("type", "entitytype", "kind", "category", "genre"),
    "--key": ("id", "uid", "uuid", "key", "isbn", "sku", "code"),
}
"""How such columns are usually named, for a proposal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """Columns that a caller names; those left out are named as the mapped properties."""

    name: str | None = None
    entity_type: str | None = None
    key: str | None = None
    text: tuple[str, ...] = ()
    collection: str | None = None
    """The collection that the rows belong to; without it the first."""


class ColumnPlan:
    """Turns the rows of one file into entities."""

    def __init__(self, choice: ColumnChoice, mapping: Collection, *, place: str) -> None:
        self._mapping, self._place = mapping, place
        self._collection = choice.collection
        self._name = choice.name or mapping.name_property
        self._type = choice.entity_type or mapping.type_property
        self._key = choice.key or mapping.key
        self._said = (choice.name, choice.entity_type, choice.key, *choice.text)
        self._lenient = bool(choice.text)
        self._texts = self._text_columns(choice.text)
        self._read = {self._name, self._type, self._key, *self._columns_of_texts()}
        self._ignored: dict[str, None] = {}

    @property
    def ignored(self) -> list[str]:
        """Columns that were not read, in the order of the file."""
        return list(self._ignored)

    def choose(self, names: Sequence[str]) -> list[str]:
        """Of the columns of the file, those that are read."""
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise RequestError(f"{self._place} has columns of the same name: {_list(repeated)}.")
        for needed in dict.fromkeys([self._name, *(said for said in self._said if said)]):
            if needed not in names:
                raise RequestError(
                    f"{self._place} has no column {needed!r}; it has: {_list(names)}. "
                    f"Say which columns to use, for example: {_proposal(names)}"
                )
        self._ignore(names)
        return [name for name in names if name in self._read]

    def entity(self, row: Row, *, cells: bool) -> NewEntity | BadRow:
        """From strings, numbers, dates, lists of them and None.

        `cells`: the format has no lists, so a text that is a JSON list is one.
        """
        self._ignore(row.values)
        values = {name: row.values[name] for name in self._read if name in row.values}
        if any(_length(value) > LONGEST_CELL for value in values.values()):
            return BadRow(line=row.line, reason=CELL_TOO_LONG)
        try:
            entity = NewEntity(
                name=_text(values.get(self._name), self._name),
                entity_type=_text(values.get(self._type), self._type),
                properties=self._properties(values, cells=cells),
                uid=_key(values.get(self._key)),
                collection=self._collection,
            )
            if not entity.name:
                return BadRow(line=row.line, reason=f"has no {self._name}")
            check_entities([entity], mapping=self._mapping)
        except (ValueError, RequestError) as error:
            return BadRow(line=row.line, reason=str(error).removesuffix("."))
        return entity

    def _text_columns(self, chosen: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The columns of each text property; name and type are texts without being named."""
        mapping = self._mapping
        titles = (mapping.name_property, mapping.type_property)
        own = [name for name in mapping.text_properties if name not in titles]
        if not chosen:
            return {each: (each,) for each in own}
        if len(own) != 1:
            raise RequestError(
                f"The columns of --text would have to become one property, but the mapping has "
                f"{_list(own) or 'none beside name and type'}: name the columns like these."
            )
        said = {self._name: mapping.name_property, self._type: mapping.type_property}
        return {own[0]: tuple(c for c in chosen if said.get(c) not in mapping.text_properties)}

    def _columns_of_texts(self) -> Iterable[str]:
        return (column for columns in self._texts.values() for column in columns)

    def _ignore(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._read and len(self._ignored) < MOST_NAMED:
                self._ignored[name] = None

    def _properties(self, values: Mapping[str, object], *, cells: bool) -> dict[str, TextValue]:
        found: dict[str, TextValue] = {}
        for name, columns in self._texts.items():
            there = {column: values[column] for column in columns if column in values}
            if not there:
                continue
            texts = [
                _value(column, self._list(value) if cells else value)
                for column, value in there.items()
            ]
            found[name] = texts[0] if len(columns) == 1 else tuple(_lines(texts))
        return found

    def _list(self, value: object) -> object:
        """The list in a cell. What only looks like one is a text in columns that were chosen."""
        if not isinstance(value, str) or not value.lstrip().startswith("["):
            return value
        try:
            return _json_list(value)
        except ValueError:
            if self._lenient:
                return value
            raise


def _list(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(str(name)[:100] for name in names[:MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _proposal(names: Sequence[str]) -> str:
    """Flags with columns that are usually named so; the first column is the name otherwise."""
    by_word = {name.strip().lower(): name for name in reversed(names)}
    found = {
        flag: next((by_word[word] for word in words if word in by_word), None)
        for flag, words in _USUAL.items()
    }
    taken = set(found.values())
    found["--name"] = found["--name"] or next((n for n in names if n not in taken), names[0])
    flags = [f"{flag} {name!r}" if " " in name else f"{flag} {name}"
             for flag, name in found.items() if name]  # fmt: skip
    return " ".join(flags)


def _json_list(cell: str) -> list[str]:
    try:
        items = json.loads(cell)
    except json.JSONDecodeError as error:
        raise ValueError(f"has a list that is not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        # A list in lists, or a number: Python refuses to parse more than 4,300 digits.
        raise ValueError("has a list with something else than strings") from error
    if not all(isinstance(item, str) for item in items):
        raise ValueError("has a list with something else than strings")
    return list(items)


def _lines(texts: Iterable[TextValue]) -> Iterable[str]:
    for text in texts:
        yield from (text,) if isinstance(text, str) else text or ()


def _length(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(_length, value)) if isinstance(value, list) else 0


def _text(value: object, column: str) -> str:
    if is_missing(value):
        return ""
    if (words := _words(value)) is None:
        raise ValueError(f"has a {column} that is not a text")
    return words


def _key(value: object) -> EntityUid | None:
    if is_missing(value):
        return None
    words = _words(value)
    if words is None or (isinstance(value, float) and not value.is_integer()):
        raise ValueError("has a key that is neither a string nor a whole number")
    return EntityUid(words) if words else None


def _value(column: str, value: object) -> TextValue:
    if is_missing(value):
        return None
    if isinstance(value, list | tuple):
        items = [item if isinstance(item, str) else _words(item) for item in value]
        if None not in items:
            return tuple(item for item in items if item is not None)
    elif (words := _words(value)) is not None:
        return words
    raise ValueError(f"has {column} that are neither a text nor a list of texts")


def _words(value: object) -> str | None:
    """A string, number or date as text; None if it is something else.

    Spreadsheets and frames hold whole numbers as floats.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float | Decimal):
        return str(value)
    return value.isoformat() if isinstance(value, date) else None


def is_missing(value: object) -> bool:
    # pandas writes a missing text as NaN, the only value that is not equal to itself.
    return value is None or value != value
