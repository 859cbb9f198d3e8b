"""The server for agents: `embed-pipeline mcp`, the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

from embed_pipeline.interfaces.mcp.server import serve

__all__ = ["serve"]
