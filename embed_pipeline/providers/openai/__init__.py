"""OpenAI's embeddings, and those of every server with the same protocol (Azure's `/openai/v1`)."""

from __future__ import annotations

import openai

from embed_pipeline.providers.openai.client import PunctualClient
from embed_pipeline.providers.openai.embeddings import OpenAIEmbeddings
from embed_pipeline.settings import ProviderSettings

# Passed explicitly, because the SDK would otherwise read OPENAI_BASE_URL.
BASE_URL = "https://api.openai.com/v1"


class OpenAIProvider(OpenAIEmbeddings):
    name = "openai"

    def _open_client(self) -> openai.OpenAI:
        return openai.OpenAI(
            api_key=self._api_key,
            base_url=self._settings.base_url or BASE_URL,
            timeout=self._settings.timeout.total_seconds(),
            http_client=PunctualClient(timeout=self._settings.timeout),
            max_retries=0,
        )


def open_provider(settings: ProviderSettings) -> OpenAIProvider:
    return OpenAIProvider(settings)
