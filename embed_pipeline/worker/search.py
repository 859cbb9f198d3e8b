"""Semantic search: the query is embedded with the same model, within the same budget."""

from __future__ import annotations

from embed_pipeline.errors import RateLimited, RequestError
from embed_pipeline.model.embedding import SearchResult, Vector
from embed_pipeline.model.window import Denied, Spent
from embed_pipeline.ports.embedding_provider import Input
from embed_pipeline.worker.budget import keep_books, pause_for
from embed_pipeline.worker.call import ask
from embed_pipeline.worker.tools import Tools


def search(
    tools: Tools, query: str, *, limit: int = 10, entity_type: str | None = None
) -> SearchResult:
    if not query.strip():
        raise RequestError("A search needs some words.")
    (fitted,) = tools.provider.fit([query])
    tools.provider.get_ready()  # before the grant, which is for now
    vector = _embedded(tools, fitted)
    return tools.graph.search(vector, model=tools.model, limit=limit, entity_type=entity_type)


def _embedded(tools: Tools, fitted: Input) -> Vector:
    taken = tools.limiter.take(Spent(requests=1, tokens=fitted.tokens))
    if isinstance(taken, Denied):
        raise RateLimited(
            f"The budget of {tools.provider.name} is used up until {taken.retry_at:%H:%M:%S} UTC."
        )
    try:
        answer = ask(tools.provider, [fitted.text])
    except RateLimited as error:
        pause_for(tools.limiter, error)
        raise
    keep_books(tools.limiter, taken, answer)
    vector: Vector = answer.vectors[0]
    return vector
