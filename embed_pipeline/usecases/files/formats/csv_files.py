"""CSV and TSV: a header, then rows. Encoding and separator are found by the beginning."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import TextIOWrapper
from typing import Any, BinaryIO, TextIO

from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.table import (
    CELL_TOO_LONG,
    LONGEST_CELL,
    LONGEST_ROW,
    PIECE,
    ROW_TOO_LONG,
    BadRow,
    Choose,
    Columns,
    Row,
    Source,
    Write,
)

SEPARATORS = ",;\t|"
"""If two are equally frequent in the header, the first is taken."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _RowTooLong(csv.Error):
    pass


class _Lines(Iterator[str]):
    """The lines of a file, for a csv reader; no more than the longest row is held in memory."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._length = self._quotes = 0
        self._first: str | None = None
        self.number = 0
        """Lines read so far; the csv reader does not count those that it never sees."""

    def first(self) -> str:
        """The first line, which is read again afterwards."""
        self._first = next(self, "")
        return self._first

    def start_row(self) -> None:
        self._length = self._quotes = 0

    @property
    def inside_quotes(self) -> bool:
        """Whether the next line continues a quoted cell of this row."""
        return self._quotes % 2 == 1

    def __next__(self) -> str:
        if self._first:
            line, self._first = self._first, None
            return line
        line = self._file.readline(LONGEST_ROW - self._length + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self._count(line)
        if self._length <= LONGEST_ROW:
            return line
        while line and not line.endswith(("\n", "\r")):
            line = self._file.readline(PIECE)
            self._count(line)
        raise _RowTooLong(ROW_TOO_LONG)

    def _count(self, part: str) -> None:
        self._length += len(part)
        self._quotes += part.count('"')


def read_csv(source: Source, choose: Choose) -> Iterator[Row | BadRow]:
    return _read(source, choose, SEPARATORS)


def read_tsv(source: Source, choose: Choose) -> Iterator[Row | BadRow]:
    return _read(source, choose, "\t")


def _read(source: Source, choose: Choose, separators: str) -> Iterator[Row | BadRow]:
    csv.field_size_limit(LONGEST_CELL)
    text = TextIOWrapper(source.file, newline="", encoding=_encoding(source))
    try:
        lines = _Lines(text)
        separator = _separator(lines.first(), separators)
        reader = csv.DictReader(lines, delimiter=separator, strict=True)
        if not reader.fieldnames:
            raise RequestError(f"{source.name} is empty: it needs a header and rows.")
        names = [name.strip() for name in reader.fieldnames]
        reader.fieldnames = names
        chosen = set(choose([name for name in names if name]))
        yield from _rows(reader, lines, chosen)
    except UnicodeError as error:
        raise RequestError(f"{source.name} is not UTF-8 text.") from error
    except csv.Error as error:
        raise RequestError(f"{source.name} has a header that is not CSV: {error}.") from error
    finally:
        text.detach()  # whoever opened the file closes it


def _encoding(source: Source) -> str:
    """Excel saves "Unicode text" as UTF-16, which begins with a mark."""
    peek = getattr(source.file, "peek", None)
    return "utf-16" if peek and peek(2)[:2] in _UTF16 else "utf-8-sig"


def _separator(header: str, separators: str) -> str:
    """The most frequent one outside of quotes."""
    plain = "".join(header.split('"')[::2])
    return max(separators, key=plain.count)


def _rows(reader: csv.DictReader[str], lines: _Lines, chosen: set[str]) -> Iterator[Row | BadRow]:
    while True:
        lines.start_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # The csv module tells a cell that is too long from broken quoting by its words alone.
            cell = str(error).startswith("field larger than field limit")
            reason = CELL_TOO_LONG if cell else str(error)
            if lines.inside_quotes or not (cell or isinstance(error, _RowTooLong)):
                # The start of the next row is unknown.
                reason += "; the rest of the file was not read"
                yield BadRow(line=lines.number, reason=reason)
                return
            yield BadRow(line=lines.number, reason=reason)
        else:
            yield _row(row, chosen, lines.number)


def _row(
    row: dict[str | None, str | list[str] | None], chosen: set[str], line: int
) -> Row | BadRow:
    if None in row:
        return BadRow(line=line, reason="has more cells than the header")
    if None in row.values():
        return BadRow(line=line, reason="has fewer cells than the header")
    return Row(line=line, values={name: row[name] for name in chosen})


@contextmanager
def csv_writer(file: BinaryIO, columns: Columns) -> Iterator[Write]:
    with TextIOWrapper(file, newline="", encoding="utf-8") as text:
        writer = csv.DictWriter(text, list(columns))
        writer.writeheader()

        def write(rows: Sequence[Mapping[str, Any]]) -> None:
            writer.writerows({name: _written(row[name]) for name in columns} for row in rows)

        yield write


def _written(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
