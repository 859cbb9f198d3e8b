"""How long the vectors of OpenAI's models are, for the settings and for the providers."""

from __future__ import annotations

from collections.abc import Mapping

NATIVE_DIMENSIONS: Mapping[str, int] = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
