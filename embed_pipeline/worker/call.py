"""One request to the provider, and whether its answer, or its refusal, can be believed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embed_pipeline.errors import InputRefused, MalformedResponse, SettingsRefused, TransientError
from embed_pipeline.model.window import Denied, Spent
from embed_pipeline.ports.embedding_provider import Embedded, EmbeddingProvider
from embed_pipeline.worker.tools import Tools

HARMLESS = "text"
"""What no provider has a reason to refuse."""


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


def answers_at_all(tools: Tools) -> bool:
    """Whether a harmless text is embedded; raises `SettingsRefused` where it is refused too.

    Worth a request where a text is refused and nothing was answered yet: else every job of the
    queue would be failed for a setting that the provider does not take.
    """
    limiter, provider = tools.limiter, tools.provider
    try:
        (harmless,) = provider.fit([HARMLESS])
        if isinstance(limiter.take(Spent(requests=1, tokens=harmless.tokens)), Denied):
            return False
        ask(provider, [harmless.text])
    except InputRefused as error:
        message = f"Any text is refused, so the settings are at fault: {error}"
        raise SettingsRefused(message) from error
    except TransientError:
        return False  # it says nothing about either
    return True
