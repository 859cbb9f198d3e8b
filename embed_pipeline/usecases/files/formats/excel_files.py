"""Excel: the first sheet, its first row the header. Needs openpyxl, an extra.

A workbook is a zip archive of XML. openpyxl reads it row by row, but holds all shared strings in
memory, and a row as a whole. So the archive is checked first: a small one may unpack to gigabytes.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from embed_pipeline.errors import RequestError, package_missing
from embed_pipeline.usecases.files.formats.table import (
    LONGEST_ROW,
    PIECE,
    BadRow,
    Choose,
    Row,
    Source,
)

MOST_ROWS = 1_048_576
"""Of a sheet, as Excel itself allows. A number behind it would be padded with empty rows."""
LARGEST_PART = 256 * 1024 * 1024
"""Bytes of what is read as a whole: shared strings, styles and the like."""

_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_ROW_END = re.compile(rb"</(?:\w+:)?row\s*>")
_TAIL = 64
"""Bytes of a piece that are searched again, for a tag that is cut in two."""


def read_excel(source: Source, choose: Choose) -> Iterator[Row | BadRow]:
    """Rows are numbered as Excel shows them; empty ones are left out."""
    openpyxl = _openpyxl()
    try:
        _check_archive(source.file)
        source.file.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # styles and validations that openpyxl does not know
            # `data_only`: the last value of a formula, not the formula.
            book = openpyxl.load_workbook(source.file, read_only=True, data_only=True)
        with closing(book):
            yield from _rows(source, book.worksheets[0], choose)
    except _Refused as error:
        raise RequestError(f"{source.name} {error}.") from error
    except (BadZipFile, zlib.error, KeyError, IndexError, SyntaxError, ValueError) as error:
        # openpyxl lets the errors of zip and XML through; a ParseError is a SyntaxError.
        raise RequestError(f"{source.name} is no .xlsx workbook, or is damaged.") from error


class _Refused(Exception):
    pass


def _rows(source: Source, sheet: Any, choose: Choose) -> Iterator[Row | BadRow]:
    sheet.reset_dimensions()  # what a file says of its size may be wrong
    rows = enumerate(sheet.iter_rows(values_only=True), 1)
    header = next((cells for _, cells in rows if any(cell is not None for cell in cells)), ())
    named = {
        index: str(cell).strip() for index, cell in enumerate(header) if str(cell or "").strip()
    }
    if not named:
        raise _Refused("is empty: its first sheet needs a header and rows")
    chosen = set(choose(list(named.values())))
    columns = {index: name for index, name in named.items() if name in chosen}
    for number, cells in rows:
        if number > MOST_ROWS:
            raise _Refused(f"has more than {MOST_ROWS:,} rows")
        values = {name: cells[index] for index, name in columns.items() if index < len(cells)}
        if any(value is not None for value in values.values()):
            yield Row(line=number, values=values)


def _check_archive(file: IO[bytes]) -> None:
    """Nothing of it is in memory but a piece; zipfile reads no more than a part's stated size."""
    with ZipFile(file) as archive:
        for part in archive.infolist():
            is_sheet = _SHEET.fullmatch(part.filename) is not None
            if not is_sheet and part.file_size > LARGEST_PART:
                raise _Refused(f"has a part of more than {LARGEST_PART >> 20} MB when unpacked")
            if part.filename.endswith(".xml"):
                with archive.open(part) as opened:
                    _check_part(opened, longest_row=LONGEST_ROW if is_sheet else LARGEST_PART)


def _check_part(part: IO[bytes], *, longest_row: int) -> None:
    """No comment, CDATA or DTD, which no workbook has: they could hide the ends of rows."""
    behind, row = b"", 0
    while piece := part.read(PIECE):
        window = behind + piece
        if b"<!" in window:
            raise _Refused("has declarations in its XML that no workbook has")
        ends = [found.end() for found in _ROW_END.finditer(window)]
        row = len(window) - ends[-1] if ends else row + len(piece)
        if row > longest_row:
            raise _Refused(f"has a row of more than {LONGEST_ROW >> 20} MB when unpacked")
        behind = window[-_TAIL:]


def _openpyxl() -> Any:
    """Imported only for a workbook."""
    try:
        import openpyxl
    except ModuleNotFoundError as error:
        if error.name != "openpyxl":
            raise
        raise package_missing("An Excel file", "openpyxl", extra="excel") from error
    return openpyxl
