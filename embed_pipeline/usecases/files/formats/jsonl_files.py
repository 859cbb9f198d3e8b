"""JSON Lines: an object per line, its properties the mapped ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from embed_pipeline.domain.collection import Collection
from embed_pipeline.domain.entity import NewEntity
from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.row import (
    LONGEST_ROW,
    PIECE,
    ROW_TOO_LONG,
    BadRow,
    entity_of,
    known_columns,
    readable,
)


def read_jsonl(path: Path, mapping: Collection) -> Iterator[NewEntity | BadRow]:
    """Lines are decoded one by one, so a line that is not UTF-8 spoils no other."""
    with readable(path), path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_ROW + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
                _refuse_a_single_list(path, line)
            if len(line) > LONGEST_ROW:
                while line and not line.endswith(b"\n"):
                    line = file.readline(PIECE)
                yield BadRow(line=number, reason=ROW_TOO_LONG)
            elif line.strip():
                yield _entity(line, mapping, number)


def _refuse_a_single_list(path: Path, line: bytes) -> None:
    if line.lstrip().startswith(b"["):
        raise RequestError(
            f"{path} is a JSON list: write each of its objects on a line of its own."
        )


def _entity(line: bytes, mapping: Collection, number: int) -> NewEntity | BadRow:
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
    if unknown := sorted(values.keys() - known_columns(mapping)):
        return BadRow(line=number, reason=f"has unmapped properties: {', '.join(unknown)}")
    return entity_of(values, mapping, line=number)
