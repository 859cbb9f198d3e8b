"""The server: lists the tools, calls them in threads, and closes the stores at its end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any

import anyio
from anyio.abc import TaskStatus
from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext
from mcp.types import CallToolResult, TextContent

from embed_pipeline import __version__, telemetry, wiring
from embed_pipeline.errors import EmbedPipelineError, ErrorCategory, RequestError
from embed_pipeline.interfaces.mcp.stdio import Stdio
from embed_pipeline.interfaces.mcp.tool import AgentTool
from embed_pipeline.interfaces.mcp.tools import INSTRUCTIONS, TOOLS
from embed_pipeline.settings import IN_PROCESS, load_settings
from embed_pipeline.telemetry import emit, redact
from embed_pipeline.worker.context import Services

NAME = "embed-pipeline"
ADVICE: Mapping[ErrorCategory, str] = {
    ErrorCategory.TRANSIENT: "This may be temporary: try again in a minute.",
    ErrorCategory.PERMANENT: "The same call will fail again.",
    ErrorCategory.CRITICAL: "Do not try again: a person has to act first.",
}


def serve() -> None:
    """Speak MCP on stdin and stdout until the client disconnects or a signal arrives.

    Logs go to stderr. Raises ConfigurationError for unusable settings; the databases may be down
    and come back later.
    """
    settings = load_settings()
    telemetry.configure(settings.logging.level, settings.logging.format)
    for note in settings.notes:
        sys.stderr.write(note + "\n")
    with ExitStack() as stack:
        services = stack.enter_context(closing(wiring.open_services(settings)))
        anyio.run(_serve, server_for(services), stack.close)


def server_for(services: Services) -> Server[dict[str, Any]]:
    queries_leave = services.provider.name not in IN_PROCESS

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = [tool.listed(queries_leave=queries_leave) for tool in TOOLS.values()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            known = ", ".join(TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"No tool {params.name!r}; there are: {known}.")
        # Not abandoned when the client cancels: the stores stay open until the call has ended.
        return await anyio.to_thread.run_sync(call, services, tool, params.arguments or {})

    return Server(
        NAME,
        version=__version__,
        title="embed_pipeline",
        description="Keeps every entity of a knowledge graph embedded.",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def call(services: Services, tool: AgentTool[Any], given: Mapping[str, Any]) -> CallToolResult:
    """The answer as a sentence and as data, or an error with advice. Blocks; never raises."""
    try:
        answer = tool.call(services, given)
    except RequestError as error:
        return _error(str(error))
    except EmbedPipelineError as error:
        return _error(f"{error} {ADVICE[error.category]}")
    except Exception as error:
        # A bug of ours: the protocol's own answer would contain the exception's text, unredacted.
        emit("tool.failed", tool=tool.name, error=error)
        return _error(
            f"{tool.name} failed: {type(error).__name__}. This is a bug; see the server's log."
        )
    return CallToolResult(
        content=[_text(answer.message), _text(answer.model_dump_json(exclude={"message"}))],
        structured_content=answer.model_dump(mode="json"),
    )


def _error(sentence: str) -> CallToolResult:
    return CallToolResult(content=[_text(redact(sentence))], is_error=True)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


async def _serve(server: Server[Any], close_stores: Callable[[], None]) -> None:
    stdio = Stdio()
    ended_by: list[signal.Signals] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, stdio, ended_by)
        await server.run(stdio.incoming, stdio, server.create_initialization_options())
    if ended_by:
        # The thread that reads stdin cannot be woken. So close the stores, and then end the
        # process as the signal would have done.
        close_stores()
        signal.signal(ended_by[0], signal.SIG_DFL)
        os.kill(os.getpid(), ended_by[0])


async def _read(stdio: Stdio, ended_by: list[signal.Signals]) -> None:
    """Until the client hangs up or a signal arrives. The calls under way are answered."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(_watch_for_signals, tasks.cancel_scope, ended_by)
        await stdio.read()
        tasks.cancel_scope.cancel()
    await stdio.finish()


async def _watch_for_signals(
    scope: anyio.CancelScope, ended_by: list[signal.Signals], *, task_status: TaskStatus[None]
) -> None:
    with ExitStack() as stack:
        receiver = anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM)
        try:
            signals = stack.enter_context(receiver)
        except NotImplementedError:  # Windows, where a signal ends the process at once
            return
        finally:
            task_status.started()
        async for number in signals:
            ended_by.append(number)
            scope.cancel()
            return
