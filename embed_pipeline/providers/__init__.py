"""Embedding providers by name; a provider's packages are imported when it is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.providers.config import ProviderConfig

__all__ = ["PROVIDERS", "ProviderConfig", "open_provider"]

PROVIDERS: Mapping[str, str] = {
    "openai": "embed_pipeline.providers.openai",
    "azure": "embed_pipeline.providers.azure",
    "local": "embed_pipeline.providers.local",
    "mock": "embed_pipeline.providers.mock",
}

_DISTRIBUTIONS: Mapping[str, str] = {"local": "embed-pipeline[local]"}


def open_provider(name: str, config: ProviderConfig) -> EmbeddingProvider:
    """The provider, ready to embed; nothing is sent or loaded before its first request."""
    if name not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS))
        raise ConfigurationError([f"Unknown embedding provider {name!r}; known are: {known}."])
    try:
        opener: Callable[[ProviderConfig], EmbeddingProvider]
        opener = import_module(PROVIDERS[name]).open_provider
        return opener(config)
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.startswith("embed_pipeline"):
            raise
        distribution = _DISTRIBUTIONS.get(name, "embed-pipeline")
        raise ConfigurationError(
            [
                f"The {name} provider needs the package {exc.name!r}, "
                f"which is not installed: pip install '{distribution}'."
            ]
        ) from exc
