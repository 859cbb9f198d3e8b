"""What is wrong with a message that is no request of JSON-RPC 2.0, as the answer to it."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from mcp import types
from pydantic import ValidationError

_ID_AT_THE_START = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15}|"[ -!#-\[\]-~]*")\s*[,}]'
)
"""The id of a line that is not JSON; later in the line it could be that of an entity."""


def refusal_of(line: bytes, error: ValidationError) -> types.JSONRPCError:
    first = error.errors(include_input=False)[0]
    if first["type"] == "json_invalid":
        problem = types.ErrorData(code=types.PARSE_ERROR, message=f"{first['msg']}.")
        return types.JSONRPCError(jsonrpc="2.0", id=_id_of(line), error=problem)
    return _invalid_request("This is not a message of JSON-RPC 2.0.", id_=_id_of(line))


def id_refusal(line: bytes, message: object) -> types.JSONRPCError | None:
    """The refusal of a request whose id is neither a string nor an integer.

    The SDK takes it for a notification, which gets no answer.
    """
    if isinstance(message, types.JSONRPCNotification):
        with suppress(ValueError):  # Python refuses a number of thousands of digits
            if "id" in json.loads(line):
                return _invalid_request("The id must be a string or an integer.")
    return None


def _invalid_request(reason: str, *, id_: types.RequestId | None = None) -> types.JSONRPCError:
    problem = types.ErrorData(code=types.INVALID_REQUEST, message=reason)
    return types.JSONRPCError(jsonrpc="2.0", id=id_, error=problem)


def _id_of(line: bytes) -> types.RequestId | None:
    """None where it cannot be found. Python's parser takes some lines that the SDK's does not."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        found = _ID_AT_THE_START.match(line)
        return json.loads(found[1]) if found else None
    match message:
        case {"id": bool()}:
            return None
        case {"id": int() | str() as given} if str(given).isascii():
            return given
    return None
