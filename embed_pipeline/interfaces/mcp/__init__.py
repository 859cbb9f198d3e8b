"""The server for agents: `embed-pipeline mcp`, the Model Context Protocol on stdio or HTTP."""

from __future__ import annotations

from embed_pipeline.interfaces.mcp.http import http_options
from embed_pipeline.interfaces.mcp.server import serve

__all__ = ["http_options", "serve"]
