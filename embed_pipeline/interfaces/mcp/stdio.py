"""Standard input and output as the transport of MCP: no call stays without an answer.

The SDK's own transport drops lines that it cannot parse, and cancels calls at the end of the input.
"""

from __future__ import annotations

import os
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
from anyio.to_thread import run_sync
from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from embed_pipeline.interfaces.mcp.refusals import id_refusal, refusal_of
from embed_pipeline.telemetry import emit


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
            await self._refuse(refusal_of(line, error))
            return
        if refusal := id_refusal(line, message):
            await self._refuse(refusal)
            return
        match message:
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
