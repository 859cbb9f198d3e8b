"""All tools, in the order a model reads them, and what it should know before it uses any."""

from __future__ import annotations

from typing import Any

from embed_pipeline.interfaces.mcp.graph_tools import CREATE, FORCE
from embed_pipeline.interfaces.mcp.queue_tools import HEALTH, RETRY, STATUS
from embed_pipeline.interfaces.mcp.search_tools import SEARCH, WHY
from embed_pipeline.interfaces.mcp.tool import AgentTool

TOOLS: dict[str, AgentTool[Any]] = {
    tool.name: tool for tool in (SEARCH, WHY, CREATE, FORCE, STATUS, HEALTH, RETRY)
}

INSTRUCTIONS = (
    "A knowledge graph whose entities are embedded for search by meaning. Tools that create or "
    "force only queue the work: workers embed it in the background, usually within seconds, so "
    "a new entity is found by semantic_search a little later. embedding_status tells how far "
    "they are, why_not_found why one entity is not there."
)
