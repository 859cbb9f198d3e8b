"""Semantic search. The query is embedded with the graph's model, within the shared budget."""

from __future__ import annotations

from embed_pipeline.domain.embedding import SearchResult, Vector
from embed_pipeline.domain.window import Denied, Spent
from embed_pipeline.errors import RateLimited, RequestError
from embed_pipeline.ports.embedding_provider import Input
from embed_pipeline.telemetry.latency import LatencyKind
from embed_pipeline.telemetry.spans import span
from embed_pipeline.worker.admission import ask, is_outdated, pause_all, record_usage
from embed_pipeline.worker.context import Services


def search(
    services: Services, query: str, *, limit: int = 10, entity_type: str | None = None
) -> SearchResult:
    if not query.strip():
        raise RequestError("The query must not be empty.")
    (fitted,) = services.provider.fit([query])
    services.provider.get_ready()  # before taking a grant, which is valid only briefly
    with services.timing(LatencyKind.SEARCH), span("search", model=services.model, limit=limit):
        vector = _embed(services, fitted)
        return services.graph.search(
            vector, model=services.model, limit=limit, entity_type=entity_type
        )


def _embed(services: Services, fitted: Input) -> Vector:
    asked_at = services.clock.monotonic()
    taken = services.limiter.take(Spent(requests=1, tokens=fitted.tokens))
    if isinstance(taken, Denied):
        raise RateLimited(
            f"The budget of {services.provider.name} is used up "
            f"until {taken.retry_at:%H:%M:%S} UTC."
        )
    if is_outdated(services, asked_at):
        services.limiter.give_back(taken)
        raise RateLimited("The queue's database took too long to grant the request.")
    try:
        with services.timing(LatencyKind.REQUEST):
            answer = ask(services, [fitted.text])
    except RateLimited as error:
        pause_all(services.limiter, error)
        raise
    record_usage(services.limiter, taken, answer)
    vector: Vector = answer.vectors[0]
    return vector
