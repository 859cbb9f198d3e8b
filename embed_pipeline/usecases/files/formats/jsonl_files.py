"""JSON Lines: an object per line. Lines are decoded one by one, so a bad one costs no other."""

from __future__ import annotations

import json
from collections.abc import Iterator

from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.table import (
    LONGEST_ROW,
    PIECE,
    ROW_TOO_LONG,
    BadRow,
    Choose,
    Row,
    Source,
)


def read_jsonl(source: Source, _choose: Choose) -> Iterator[Row | BadRow]:
    """No more than one line is in memory."""
    file, number = source.file, 0
    while line := file.readline(LONGEST_ROW + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            if line.lstrip().startswith(b"["):
                raise RequestError(f"{source.name} is a JSON list: say --format json.")
        if len(line) > LONGEST_ROW:
            while line and not line.endswith(b"\n"):
                line = file.readline(PIECE)
            yield BadRow(line=number, reason=ROW_TOO_LONG)
        elif line.strip():
            yield _row(line, number)


def _row(line: bytes, number: int) -> Row | BadRow:
    try:
        values = json.loads(line.decode())
    except UnicodeDecodeError:
        return BadRow(line=number, reason="is not UTF-8 text")
    except json.JSONDecodeError as error:
        return BadRow(line=number, reason=f"is not JSON: {error.msg}")
    except RecursionError:
        return BadRow(line=number, reason="is nested too deep")
    except ValueError:
        # Python refuses to parse integers of more than 4,300 digits.
        return BadRow(line=number, reason="has a number with too many digits")
    if not isinstance(values, dict):
        return BadRow(line=number, reason="is not a JSON object")
    return Row(line=number, values=values)
