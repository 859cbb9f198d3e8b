"""The server for agents: `embed-pipeline mcp` speaks the Model Context Protocol on stdio."""

from __future__ import annotations

from embed_pipeline.interfaces.mcp.server import serve

__all__ = ["serve"]
