"""Azure OpenAI: a deployment of one of OpenAI's models under an endpoint of one's own."""

from __future__ import annotations

import openai

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.providers.config import ProviderConfig
from embed_pipeline.providers.openai_deadline import PunctualClient
from embed_pipeline.providers.openai_embeddings import OpenAIEmbeddings
from embed_pipeline.providers.openai_models import checked_dimensions

API_VERSION = "2024-10-21"
"""What is asked for unless another one is configured."""


class AzureProvider(OpenAIEmbeddings):
    """The deployment is named like the model unless it is configured otherwise."""

    name = "azure"

    def _open_client(self) -> openai.OpenAI:
        return openai.AzureOpenAI(
            api_key=self._config.api_key,
            azure_endpoint=self._config.base_url or "",
            azure_deployment=self._config.deployment or self._config.model_name,
            api_version=self._config.api_version or API_VERSION,
            timeout=self._config.timeout.total_seconds(),
            http_client=PunctualClient(patience=self._config.timeout),
            max_retries=0,
        )


def open_provider(config: ProviderConfig) -> AzureProvider:
    if not config.base_url:
        raise ConfigurationError(["The azure provider needs the endpoint of its resource."])
    dimensions = checked_dimensions("azure", config, url=config.base_url)
    return AzureProvider(config, dimensions=dimensions)
