"""Embedding providers by name; a provider's packages are imported when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from embed_pipeline.errors import package_missing
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.settings import ProviderSettings


def open_provider(settings: ProviderSettings) -> EmbeddingProvider:
    """The module named like the provider opens it; nothing is sent or loaded before a request."""
    try:
        module = import_module(f"embed_pipeline.providers.{settings.name}")
        opener: Callable[[ProviderSettings], EmbeddingProvider] = module.open_provider
        return opener(settings)
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.startswith("embed_pipeline"):
            raise
        what = f"The {settings.name} provider"
        raise package_missing(what, exc.name, extra=settings.name) from exc
