"""`embed-pipeline mcp`: the server for agents, whose package is an extra."""

from __future__ import annotations

import typer

from embed_pipeline.errors import ConfigurationError


def mcp() -> None:
    """Serve the tools for agents over stdin and stdout (Model Context Protocol).

    Started by an MCP client, which ends it too; the settings are those of its environment.

    Example: `embed-pipeline mcp`
    """
    try:
        from embed_pipeline.interfaces.mcp import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise ConfigurationError(
            ["The MCP server needs the package mcp: pip install 'embed-pipeline[mcp]'."]
        ) from error
    serve()


def add_to(app: typer.Typer) -> None:
    app.command()(mcp)
