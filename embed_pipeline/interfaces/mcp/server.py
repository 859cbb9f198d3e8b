"""The server: tools and resources, called in threads; the stores are closed at its end."""

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
from embed_pipeline.errors import (
    ConfigurationError,
    EmbedPipelineError,
    ErrorCategory,
    RequestError,
)
from embed_pipeline.interfaces.mcp import resources
from embed_pipeline.interfaces.mcp.http import HttpOptions, serve_http
from embed_pipeline.interfaces.mcp.stdio import Stdio
from embed_pipeline.interfaces.mcp.tool import AgentTool
from embed_pipeline.interfaces.mcp.tools import INSTRUCTIONS, TOOLS
from embed_pipeline.settings import IN_PROCESS, Settings, load_settings
from embed_pipeline.telemetry import emit, redact
from embed_pipeline.worker.context import Services

NAME = "embed-pipeline"
ADVICE: Mapping[ErrorCategory, str] = {
    ErrorCategory.TRANSIENT: "This may be temporary: try again in a minute.",
    ErrorCategory.PERMANENT: "The same call will fail again.",
    ErrorCategory.CRITICAL: "Do not try again: a person has to act first.",
}


def serve(
    *,
    http: HttpOptions | None = None,
    read_only: bool = False,
    listening: Callable[[str], None] = lambda address: None,
) -> None:
    """Speak MCP on stdin and stdout, or over HTTP, until the client or a signal ends it.

    `listening` gets the address of HTTP. Logs go to stderr. Raises ConfigurationError for unusable
    settings; the databases may be down and come back later.
    """
    settings = load_settings()
    telemetry.configure(settings.logging.level, settings.logging.format)
    for note in settings.notes:
        sys.stderr.write(note + "\n")
    with ExitStack() as stack:
        services = stack.enter_context(closing(wiring.open_services(settings)))
        server = server_for(services, read_only=read_only)
        if http is None:
            anyio.run(_serve, server, stack.close)
        else:
            serve_http(server, http, token=_token(settings), listening=listening)


def _token(settings: Settings) -> str:
    if settings.mcp.token is None:
        raise ConfigurationError(
            [
                "EMBED_MCP_TOKEN must be set for MCP over HTTP; make one with "
                '`python3 -c "import secrets; print(secrets.token_urlsafe(32))"`.'
            ]
        )
    return settings.mcp.token.get_secret_value()


def server_for(services: Services, *, read_only: bool = False) -> Server[dict[str, Any]]:
    answers = _Answers(services, read_only=read_only)
    return Server(
        NAME,
        version=__version__,
        title="embed_pipeline",
        description="Keeps every entity of a knowledge graph embedded.",
        instructions=INSTRUCTIONS,
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_templates,
        on_read_resource=answers.read_resource,
    )


Context = ServerRequestContext[Any]
Page = types.PaginatedRequestParams | None


class _Answers:
    """One method per request of the protocol."""

    def __init__(self, services: Services, *, read_only: bool) -> None:
        self._services = services
        self._tools = {
            name: tool for name, tool in TOOLS.items() if not (read_only and tool.changes)
        }

    async def list_tools(self, context: Context, params: Page) -> types.ListToolsResult:
        queries_leave = self._services.provider.name not in IN_PROCESS
        tools = [tool.listed(queries_leave=queries_leave) for tool in self._tools.values()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(types.INVALID_PARAMS, f"No tool {params.name!r}; there are: {known}.")
        # Not abandoned when the client cancels: the stores stay open until the call has ended.
        return await anyio.to_thread.run_sync(call, self._services, tool, params.arguments or {})

    async def list_resources(self, context: Context, params: Page) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources.listed())

    async def list_templates(
        self, context: Context, params: Page
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await anyio.to_thread.run_sync(read, self._services, params.uri)


def read(services: Services, uri: str) -> types.ReadResourceResult:
    """Blocks; an error is a sentence, like that of a tool."""
    try:
        return resources.read(services, uri)
    except EmbedPipelineError as error:
        sentence = redact(f"{error} {ADVICE[error.category]}")
        raise MCPError(types.INTERNAL_ERROR, sentence) from error


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
