"""Which dimensions OpenAI's models can have, and what is wrong with settings for them."""

from __future__ import annotations

from urllib.parse import urlsplit

from embed_pipeline.domain.dimensions import NATIVE_DIMENSIONS
from embed_pipeline.errors import ConfigurationError
from embed_pipeline.providers.config import ProviderConfig

_FIXED_DIMENSIONS = frozenset({"text-embedding-ada-002"})


def sends_dimensions(config: ProviderConfig) -> bool:
    """By itself only where the model is known to take them: other servers may answer 400."""
    if config.model_name in _FIXED_DIMENSIONS:
        return False
    if config.send_dimensions is not None:
        return config.send_dimensions
    return config.model_name in NATIVE_DIMENSIONS


def checked_dimensions(provider: str, config: ProviderConfig, *, url: str) -> int:
    """The dimensions to expect, of settings that can be used; else all that is wrong with them."""
    native = NATIVE_DIMENSIONS.get(config.model_name)
    dimensions = native if config.dimensions is None else config.dimensions
    problems = [*_key_problems(provider, config.api_key or ""), *_url_problems(provider, url)]
    if dimensions is None:
        problems.append(f"The dimensions of model {config.model_name!r} have to be configured.")
    elif not _possible(config, dimensions):
        problems.append(f"Model {config.model_name!r} cannot have {dimensions} dimensions.")
    if problems or dimensions is None:
        raise ConfigurationError(problems)
    return dimensions


def _key_problems(provider: str, key: str) -> list[str]:
    if not key:
        return [f"The {provider} provider needs an API key."]
    if not (key.isascii() and key.isprintable()) or " " in key:
        # The HTTP client would refuse it too, and quote it.
        return ["The API key holds spaces, line ends or characters that no key has."]
    return []


def _url_problems(provider: str, url: str) -> list[str]:
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and parts.hostname:
        return []
    return [f"The base URL of the {provider} provider is no http or https URL."]


def _possible(config: ProviderConfig, dimensions: int) -> bool:
    native = NATIVE_DIMENSIONS.get(config.model_name)
    if native is None:
        return dimensions > 0
    return 0 < dimensions <= native if sends_dimensions(config) else dimensions == native
