"""Standard input and output as the transport of MCP: no call stays without an answer.

The SDK's own transport drops lines that it cannot parse, and cancels calls at the end of the input.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
from anyio.to_thread import run_sync
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from embed_pipeline.telemetry import emit

_ID_AT_THE_START = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15}|"[ -!#-\[\]-~]*")\s*[,}]'
)
"""The id of a line that is not JSON; later in the line it could be that of an entity."""


class Stdio:
    """Reads messages for the server, and is the stream that the server writes its answers to.

    While it serves, other readers of standard input get nothing, and other writers to standard
    output write to standard error.
    """

    def __init__(self) -> None:
        self._input = os.fdopen(_taken_over(0, os.open(os.devnull, os.O_RDONLY)), "rb")
        self._output = _taken_over(1, os.dup(2))
        self._writing = anyio.Lock()
        self._calls: set[str] = set()
        self._answered = anyio.Event()
        self._messages, self.incoming = anyio.create_memory_object_stream[
            SessionMessage | Exception
        ]()

    async def read(self) -> None:
        """Until the client hangs up. A cancelled read leaves a thread that waits for a line."""
        while line := await run_sync(self._input.readline, abandon_on_cancel=True):
            if line.strip():
                await self._receive(line)

    async def finish(self) -> None:
        """Wait until every call is answered, and only then end the server's input."""
        while self._calls:
            self._answered = anyio.Event()
            await self._answered.wait()
        await self._messages.aclose()

    async def send(self, message: SessionMessage) -> None:
        """Returns when the client can read the message, or has closed its reading end."""
        answer = message.message
        line = answer.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        async with self._writing:
            with suppress(BrokenPipeError):
                await run_sync(self._write, line.encode())
        if isinstance(answer, types.JSONRPCResponse | types.JSONRPCError):
            self._forget(answer.id)

    async def aclose(self) -> None:
        """Standard output is closed with the process."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _receive(self, line: bytes) -> None:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            await self._refuse(_refusal_of(line, error))
            return
        match message:
            case types.JSONRPCNotification() if _has_id(line):
                # The SDK takes a request whose id is neither a string nor an integer for a
                # notification, which gets no answer.
                await self._refuse(_invalid_request("The id must be a string or an integer."))
                return
            case types.JSONRPCRequest(method="tools/call"):
                self._calls.add(str(message.id))
            case types.JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                self._forget(params.get("requestId"))  # the server does not answer it
        await self._messages.send(SessionMessage(message))

    async def _refuse(self, refusal: types.JSONRPCError) -> None:
        emit("message.refused", reason=refusal.error.message)
        await self.send(SessionMessage(refusal))

    def _forget(self, call: object) -> None:
        self._calls.discard(str(call))
        self._answered.set()

    def _write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._output, line) :]


def _taken_over(descriptor: int, replacement: int) -> int:
    """A copy of the descriptor; the descriptor itself becomes the replacement."""
    copy = os.dup(descriptor)
    os.dup2(replacement, descriptor)
    os.close(replacement)
    return copy


def _refusal_of(line: bytes, error: ValidationError) -> types.JSONRPCError:
    first = error.errors(include_input=False)[0]
    if first["type"] == "json_invalid":
        problem = types.ErrorData(code=types.PARSE_ERROR, message=f"{first['msg']}.")
        return types.JSONRPCError(jsonrpc="2.0", id=_id_of(line), error=problem)
    return _invalid_request("This is not a message of JSON-RPC 2.0.", id_=_id_of(line))


def _invalid_request(reason: str, *, id_: types.RequestId | None = None) -> types.JSONRPCError:
    problem = types.ErrorData(code=types.INVALID_REQUEST, message=reason)
    return types.JSONRPCError(jsonrpc="2.0", id=id_, error=problem)


def _has_id(line: bytes) -> bool:
    with suppress(ValueError):  # Python refuses a number of thousands of digits
        return "id" in json.loads(line)
    return False


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
