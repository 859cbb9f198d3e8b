"""JSON: one list of objects, read as a whole; larger ones have to be JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from embed_pipeline.errors import RequestError
from embed_pipeline.usecases.files.formats.table import BadRow, Choose, Row, Source

LARGEST = 256 * 1024 * 1024


def read_json(source: Source, _choose: Choose) -> Iterator[Row | BadRow]:
    """Rows are numbered from 1."""
    content = source.file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise RequestError(
            f"{source.name} is larger than {LARGEST >> 20} MB: write it as JSON Lines (.jsonl)."
        )
    try:
        objects = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RequestError(f"{source.name} is not UTF-8 text.") from error
    except json.JSONDecodeError as error:
        hint = ": say --format jsonl" if error.msg == "Extra data" else ""
        raise RequestError(
            f"{source.name} is not JSON, line {error.lineno}: {error.msg}{hint}."
        ) from error
    except RecursionError as error:
        raise RequestError(f"{source.name} is nested too deep.") from error
    except ValueError as error:
        raise RequestError(f"{source.name} has a number with too many digits.") from error
    if not isinstance(objects, list):
        raise RequestError(f"{source.name} is not a list of JSON objects.")
    for number, values in enumerate(objects, 1):
        if isinstance(values, dict):
            yield Row(line=number, values=values)
        else:
            yield BadRow(line=number, reason="is not a JSON object")
