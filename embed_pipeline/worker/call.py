"""One request to the provider, and whether its answer can be believed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embed_pipeline.errors import MalformedResponse
from embed_pipeline.ports.embedding_provider import Embedded, EmbeddingProvider


def ask(provider: EmbeddingProvider, texts: Sequence[str]) -> Embedded:
    """A provider that breaks its promise would be paid again and again for nothing."""
    answer = provider.embed(texts)
    promised = (len(texts), provider.dimensions)
    vectors = answer.vectors
    if vectors.shape != promised:
        raise MalformedResponse(f"{promised} vectors were asked for, {vectors.shape} came.")
    if not (np.isfinite(vectors).all() and vectors.any(axis=1).all()):
        raise MalformedResponse("The answer holds a vector without a direction.")
    return answer
