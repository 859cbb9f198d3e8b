"""OpenAI's embeddings, and those of every server that speaks like it, Azure's `/openai/v1` too."""

from __future__ import annotations

import openai

from embed_pipeline.providers.config import ProviderConfig
from embed_pipeline.providers.openai_deadline import PunctualClient
from embed_pipeline.providers.openai_embeddings import OpenAIEmbeddings
from embed_pipeline.providers.openai_models import checked_dimensions

# Said outright, because the SDK would take its own from the environment.
BASE_URL = "https://api.openai.com/v1"


class OpenAIProvider(OpenAIEmbeddings):
    name = "openai"

    def _open_client(self) -> openai.OpenAI:
        return openai.OpenAI(
            api_key=self._config.api_key,
            base_url=self._config.base_url or BASE_URL,
            timeout=self._config.timeout.total_seconds(),
            http_client=PunctualClient(patience=self._config.timeout),
            max_retries=0,
        )


def open_provider(config: ProviderConfig) -> OpenAIProvider:
    url = config.base_url or BASE_URL
    return OpenAIProvider(config, dimensions=checked_dimensions("openai", config, url=url))
