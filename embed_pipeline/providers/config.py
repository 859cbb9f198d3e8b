"""What a provider has to know before it is opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from embed_pipeline.ports.embedding_provider import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """None means the provider's, or the model's, own; the key is never shown."""

    model_name: str
    dimensions: int | None = None
    send_dimensions: bool | None = None
    """Whether requests name the dimensions; by itself only for models known to take them."""
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    api_version: str | None = None
    deployment: str | None = None
    timeout: timedelta = timedelta(seconds=60)
    max_inputs: int | None = None
    max_request_tokens: int | None = None
    max_input_tokens: int | None = None

    def limits(self, own: Limits) -> Limits:
        """The provider's own, with what is configured in their place; one text fits a request."""
        tokens = self.max_request_tokens or own.tokens
        per_input = self.max_input_tokens or own.tokens_per_input
        if tokens is not None and per_input is not None:
            per_input = min(per_input, tokens)
        return Limits(
            inputs=self.max_inputs or own.inputs, tokens=tokens, tokens_per_input=per_input
        )
