"""All tools, in the order in which a model reads them, and the instructions for all of them."""

from __future__ import annotations

from typing import Any

from embed_pipeline.interfaces.mcp.tool import AgentTool
from embed_pipeline.interfaces.mcp.tools.changes import DELETE, UPSERT
from embed_pipeline.interfaces.mcp.tools.entities import CREATE, FORCE, REFRESH
from embed_pipeline.interfaces.mcp.tools.queue import HEALTH, RETRY, STATUS
from embed_pipeline.interfaces.mcp.tools.search import SEARCH, TEXT, WHY

TOOLS: dict[str, AgentTool[Any]] = {
    tool.name: tool
    for tool in (
        *(SEARCH, WHY, TEXT, CREATE, UPSERT, DELETE, REFRESH, FORCE),
        *(STATUS, HEALTH, RETRY),
    )
}

INSTRUCTIONS = (
    "A knowledge graph whose entities are embedded for search by meaning. Tools that create, "
    "change or force only queue the work: workers embed it in the background, usually within "
    "seconds, so semantic_search finds a new text a little later. embedding_status shows the "
    "progress, why_not_found explains why one entity is not found."
)
