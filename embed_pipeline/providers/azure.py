"""Azure OpenAI: a deployment of one of OpenAI's models under the endpoint of a resource."""

from __future__ import annotations

import openai

from embed_pipeline.providers.openai.client import PunctualClient
from embed_pipeline.providers.openai.embeddings import OpenAIEmbeddings
from embed_pipeline.settings import ProviderSettings

API_VERSION = "2024-10-21"
"""Unless another one is set."""


class AzureProvider(OpenAIEmbeddings):
    """The deployment has the name of the model unless it is set."""

    name = "azure"

    def _open_client(self) -> openai.OpenAI:
        settings = self._settings
        return openai.AzureOpenAI(
            api_key=self._api_key,
            azure_endpoint=settings.base_url or "",
            azure_deployment=settings.deployment or settings.model,
            api_version=settings.api_version or API_VERSION,
            timeout=settings.timeout.total_seconds(),
            http_client=PunctualClient(timeout=settings.timeout),
            max_retries=0,
        )


def open_provider(settings: ProviderSettings) -> AzureProvider:
    return AzureProvider(settings)
