"""How far the dictionary of a Parquet column expands, read from the headers of its pages.

A dictionary holds a string once, however often rows use it: a list of a thousand times the same
megabyte takes a megabyte in the file and a gigabyte in memory. pyarrow does not show its pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

LARGEST_PAGE = 256 * 1024 * 1024
"""Writers end a page at about a megabyte, or after one longer string. pyarrow reads whole pages."""

_HEADERS = (512, 64 * 1024)
"""A header has some dozen bytes; statistics in it may add strings of the column."""

_DICTIONARY_PAGE = 2
_DICTIONARY_CODED = (2, 8)
_DATA_PAGES = {0: (5, 2), 3: (8, 4)}
"""By type of page: the field of its own header, and the field of the encoding in that."""

_BYTE, _INTEGERS, _BINARY, _STRUCT = 3, (4, 5, 6), 8, 12


def expansion(pa: Any, file: IO[bytes], chunk: Any, *, most_values: int | None = None) -> int:
    """Most bytes that values from the dictionary can have when each is written out.

    `most_values`: no more of them are read at once. Raises ValueError for pages that are too large
    or cannot be read.
    """
    coded = longest = 0
    for header, body in _pages(file, chunk):
        if header[1] == _DICTIONARY_PAGE:
            file.seek(body)
            longest = _longest(pa, file.read(header[3]), header[2], chunk.compression)
        elif header[1] in _DATA_PAGES:
            own, encoding = _DATA_PAGES[header[1]]
            data = header.get(own, {})
            if data.get(encoding) in _DICTIONARY_CODED:
                coded += data.get(1, 0)
    return longest * (coded if most_values is None else min(coded, most_values))


def _pages(file: IO[bytes], chunk: Any) -> Iterator[tuple[dict[int, Any], int]]:
    """Each page's header, and where its body begins."""
    starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
    at = min(start for start in starts if start)
    end = at + chunk.total_compressed_size
    while at < end:
        header, length = _header(file, at)
        if not 0 <= header[3] <= LARGEST_PAGE or not 0 <= header[2] <= LARGEST_PAGE:
            raise ValueError(f"a page has {header[2]} bytes")
        yield header, at + length
        at += length + header[3]


def _header(file: IO[bytes], at: int) -> tuple[dict[int, Any], int]:
    for most in _HEADERS:
        file.seek(at)
        with suppress(IndexError, RecursionError):
            header, length = _struct(file.read(most), 0)
            if header.keys() >= {1, 2, 3}:
                return header, length
    raise ValueError("a page has no header")


def _longest(pa: Any, page: bytes | memoryview, size: int, compression: str) -> int:
    """The longest string of a dictionary: each is preceded by its length in four bytes."""
    codec = {"LZ4": "lz4_raw"}.get(compression, compression.lower())
    if codec != "uncompressed":
        try:
            page = memoryview(pa.decompress(page, size, codec=codec))
        except (OSError, ValueError):
            return size  # an older kind of LZ4, or damaged: one string may fill the page
    longest = at = 0
    while at < len(page):
        length = int.from_bytes(page[at : at + 4], "little")
        longest = max(longest, length)
        at += 4 + length
    return longest


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """A struct in Thrift's compact protocol, by field number, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        at += 1
        kind, step = head & 15, head >> 4
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        value: Any = kind == 1  # booleans are their own type: 1 is true, 2 is false
        if kind == _STRUCT:
            value, at = _struct(data, at)
        elif kind == _BINARY:
            length, at = _varint(data, at)
            value, at = None, at + length
        elif kind in _INTEGERS:
            value, at = _integer(data, at)
        elif kind == _BYTE:
            value, at = data[at], at + 1
        elif kind > _BYTE:
            raise ValueError("a field that no header has")
        fields[number] = value
    return fields, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
