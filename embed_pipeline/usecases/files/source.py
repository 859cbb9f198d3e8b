"""Opens what a user names: a file, gzipped or not, or `-` for standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, cast

from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats import Format, format_of
from embed_pipeline.usecases.files.formats.table import PIECE, Source

STDIN = Path("-")
GZIP = b"\x1f\x8b"
LARGEST_COPY = 2 * 1024**3
"""Bytes of a file that is unpacked or received before it is read: those that need seeking."""


@contextmanager
def open_source(path: Path, *, file_format: str | None) -> Iterator[tuple[Source, Format]]:
    """The format by the name's ending, unless it is given; gzip is found by its first bytes."""
    kind = format_of(path, file_format)
    name = "Standard input" if path == STDIN else str(path)
    try:
        with ExitStack() as opened:
            raw = sys.stdin.buffer if path == STDIN else opened.enter_context(path.open("rb"))
            file: IO[bytes] = raw
            is_gzip = isinstance(raw, BufferedReader) and raw.peek(2)[:2] == GZIP
            if is_gzip:
                unpacked = opened.enter_context(gzip.open(raw))
                file = cast("IO[bytes]", unpacked)
            if kind.seeks and (is_gzip or not raw.seekable()):
                file = _copy(file, opened.enter_context(TemporaryFile()), name)
            yield Source(name=name, file=file), kind
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RequestError(f"{name} is a damaged gzip file: {error}.") from error
    except OSError as error:
        raise RequestError(f"{name} cannot be read: {error.strerror or error}.") from error


def _copy(file: IO[bytes], copy: IO[bytes], name: str) -> IO[bytes]:
    size = 0
    while piece := file.read(PIECE):
        size += len(piece)
        if size > LARGEST_COPY:
            raise RequestError(f"{name} has more than {LARGEST_COPY >> 30} GB when unpacked.")
        copy.write(piece)
    copy.seek(0)
    return copy
