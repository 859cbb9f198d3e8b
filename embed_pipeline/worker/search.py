"""Semantic search: the query is embedded with the same model, within the same budget."""

from __future__ import annotations

from embed_pipeline.errors import RateLimited, RequestError
from embed_pipeline.model.embedding import SearchResult
from embed_pipeline.model.window import Denied, Spent
from embed_pipeline.worker.tools import Tools


def search(
    tools: Tools, query: str, *, limit: int = 10, entity_type: str | None = None
) -> SearchResult:
    if not query.strip():
        raise RequestError("A search needs some words.")
    (fitted,) = tools.provider.fit([query])
    taken = tools.limiter.take(Spent(requests=1, tokens=fitted.tokens))
    if isinstance(taken, Denied):
        raise RateLimited(
            f"The budget of {tools.provider.name} is used up until {taken.retry_at:%H:%M:%S} UTC."
        )
    vector = tools.provider.embed([fitted.text]).vectors[0]
    return tools.graph.search(vector, model=tools.model, limit=limit, entity_type=entity_type)
