"""The books of the budget that everybody shares, whoever sent the request."""

from __future__ import annotations

from datetime import timedelta

from embed_pipeline.domain.window import Grant
from embed_pipeline.errors import RateLimited
from embed_pipeline.ports.embedding_provider import Embedded
from embed_pipeline.ports.rate_limiter import RateLimiter

PAUSE_WITHOUT_ADVICE = timedelta(seconds=10)
"""After a 429 that does not say how long."""


def record_usage(limiter: RateLimiter, grant: Grant, answer: Embedded) -> None:
    """Count the tokens as the provider does, and heed what it says is left."""
    counts_tokens = limiter.limit is not None and limiter.limit.tokens is not None
    if counts_tokens and answer.tokens not in (0, grant.cost.tokens):
        limiter.record_actual(grant, tokens=answer.tokens)
    if answer.remaining is not None:
        limiter.apply_provider_limits(answer.remaining)


def pause_for(limiter: RateLimiter, error: RateLimited) -> None:
    """Whom the provider told to wait is not alone: the key is everybody's."""
    limiter.pause(error.retry_after or PAUSE_WITHOUT_ADVICE)
