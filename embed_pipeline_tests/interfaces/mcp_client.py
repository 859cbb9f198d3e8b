"""The official client of the Model Context Protocol, for tests that are not asynchronous."""

from __future__ import annotations

import json
import re
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.types import CallToolResult, TextContent, TextResourceContents, Tool

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model gets to read, and what a program does."""

    sentence: str
    facts: dict[str, Any]
    is_error: bool


class Conversation:
    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self.client = portal, client

    def resources(self) -> list[str]:
        """Addresses, and the templates of addresses."""
        listed = self._portal.call(self.client.list_resources)
        templates = self._portal.call(self.client.list_resource_templates)
        uris = [resource.uri for resource in listed.resources]
        return uris + [template.uri_template for template in templates.resource_templates]

    def read(self, uri: str) -> Any:
        (content,) = self._portal.call(self.client.read_resource, uri).contents
        assert isinstance(content, TextResourceContents)
        assert content.mime_type == "application/json"
        return json.loads(content.text)

    def tools(self) -> dict[str, Tool]:
        listed = self._portal.call(self.client.list_tools)
        return {tool.name: tool for tool in listed.tools}

    def call(self, tool: str, /, **arguments: Any) -> Answer:
        result = self._portal.call(partial(self.client.call_tool, tool, arguments))
        assert isinstance(result, CallToolResult)
        first = result.content[0]
        assert isinstance(first, TextContent)
        return Answer(
            sentence=first.text,
            facts=result.structured_content or {},
            is_error=bool(result.is_error),
        )


@contextmanager
def talk_to(server: Server[Any], *, mode: str = "auto") -> Iterator[Conversation]:
    """A client in this process: the same protocol, without a second program."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server, mode=mode)) as client,
    ):
        yield Conversation(portal, client)


@contextmanager
def talk_to_program(
    parameters: StdioServerParameters, *, mode: str = "auto"
) -> Iterator[Conversation]:
    """A client that starts the server as its users' clients do."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(parameters, mode=mode)) as client,
    ):
        yield Conversation(portal, client)


@contextmanager
def talk_to_address(
    url: str, *, token: str, mode: str = "auto", verify: ssl.SSLContext | bool = True
) -> Iterator[Conversation]:
    """A client over HTTP, with its token."""
    headers = {"Authorization": f"Bearer {token}"}
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            httpx2.AsyncClient(headers=headers, verify=verify)
        ) as http,
        portal.wrap_async_context_manager(
            Client(streamable_http_client(url, http_client=http), mode=mode)
        ) as client,
    ):
        yield Conversation(portal, client)


def documented_program(home: Path, **variables: str) -> StdioServerParameters:
    """The server as docs/mcp.md tells a client to start it, with this checkout's own paths."""
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    entry = json.loads(block)["mcpServers"]["embed-pipeline"]
    program = Path(sys.executable).with_name(Path(entry["command"]).name)
    return StdioServerParameters(
        command=str(program),
        args=entry["args"],
        env=_replaced(entry["env"], EMBED_HOME=str(home)) | {"EMBED_ENV": "test"} | variables,
        cwd=home.parent,
    )


def _replaced(documented: Mapping[str, str], **mine: str) -> dict[str, str]:
    assert documented.keys() == mine.keys()
    return mine
