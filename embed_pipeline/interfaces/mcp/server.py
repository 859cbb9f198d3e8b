"""The server: lists the tools, calls them in threads, and ends with its stores closed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import anyio
from anyio.abc import TaskStatus
from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from embed_pipeline import __version__, telemetry, wiring
from embed_pipeline.interfaces.mcp.calling import call
from embed_pipeline.interfaces.mcp.catalogue import INSTRUCTIONS, TOOLS
from embed_pipeline.settings import Settings, load_settings
from embed_pipeline.worker.context import Services

NAME = "embed-pipeline"


def serve() -> None:
    """Speak MCP on stdin and stdout until the client hangs up or a signal comes; logs on stderr.

    Raises what unusable settings raise; databases may be down and come later.
    """
    settings = load_settings()
    telemetry.configure(settings.logging.level, settings.logging.format)
    for note in settings.notes:
        sys.stderr.write(note + "\n")
    with ExitStack() as stack:
        anyio.run(_serve, server_for(_opened(settings, stack)), stack.close)


def server_for(services: Services) -> Server[dict[str, Any]]:
    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.listed() for tool in TOOLS.values()])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
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


def _opened(settings: Settings, stack: ExitStack) -> Services:
    services = wiring.open_services(settings)
    for part in (services.jobs, services.graph, services.provider, services.limiter):
        stack.enter_context(closing(part))
    return services


async def _serve(server: Server[Any], close_stores: Callable[[], None]) -> None:
    async with stdio_server() as (incoming, outgoing):
        ended_by: list[signal.Signals] = []
        async with anyio.create_task_group() as tasks:
            await tasks.start(_watch_for_signals, tasks.cancel_scope, ended_by)
            await server.run(incoming, outgoing, server.create_initialization_options())
            tasks.cancel_scope.cancel()
        if ended_by:
            # The thread that reads stdin cannot be woken, so the process ends the way the signal
            # would have ended it, only later: calls are finished, stores are closed.
            close_stores()
            signal.signal(ended_by[0], signal.SIG_DFL)
            os.kill(os.getpid(), ended_by[0])


async def _watch_for_signals(
    scope: anyio.CancelScope, ended_by: list[signal.Signals], *, task_status: TaskStatus[None]
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            ended_by.append(number)
            scope.cancel()
            return
