"""What tokens cost, by the list price of the model."""

from __future__ import annotations

from embed_pipeline.settings import IN_PROCESS

PER_MILLION_TOKENS = {
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}
"""List prices in US dollars; your contract may differ."""


def estimated_price(model: str, *, tokens: int) -> float | None:
    """In US dollars; None for a model without a known price."""
    provider, _, name_and_dimensions = model.partition("/")
    if provider in IN_PROCESS:
        return 0.0
    per_million = PER_MILLION_TOKENS.get(name_and_dimensions.rpartition("@")[0])
    return None if per_million is None else round(tokens / 1_000_000 * per_million, 6)
