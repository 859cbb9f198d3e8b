"""What a provider has to know before it is opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """`dimensions=None` means the model's own; the key is never shown."""

    model_name: str
    dimensions: int | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout: timedelta = timedelta(seconds=60)
