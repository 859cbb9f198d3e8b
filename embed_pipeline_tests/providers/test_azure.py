from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import SecretStr

from embed_pipeline import errors
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.providers import open_provider
from embed_pipeline.providers.azure import AzureProvider
from embed_pipeline.settings import ProviderSettings
from embed_pipeline_tests import openai_faults as faults
from embed_pipeline_tests.contracts.embedding_provider import EmbeddingProviderContract
from embed_pipeline_tests.openai_server import OpenAIServer
from embed_pipeline_tests.providers.conftest import KEY


@pytest.fixture
def provider(server: OpenAIServer, azure_provider: EmbeddingProvider) -> EmbeddingProvider:
    return azure_provider


class TestAzureProvider(EmbeddingProviderContract):
    @pytest.fixture
    def provider(
        self, server: OpenAIServer, azure_provider: EmbeddingProvider
    ) -> EmbeddingProvider:
        return azure_provider


def test_the_deployment_is_named_like_the_model_unless_set(
    provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    provider.embed(["text"])

    (request,) = server.requests
    assert (request.model, request.dimensions) == ("text-embedding-3-small", 1536)
    assert provider.model == "azure/text-embedding-3-small@1536"


def test_a_deployment_of_another_name_keeps_the_models_identity(
    azure_config: ProviderSettings, server: OpenAIServer
) -> None:
    server.deployments = {"team-embeddings": "text-embedding-3-large"}
    provider = open_provider(
        replace(
            azure_config,
            model="text-embedding-3-large",
            dimensions=256,
            deployment="team-embeddings",
        ),
    )

    vectors = provider.embed(["text"]).vectors

    provider.close()
    assert vectors.shape == (1, 256)
    assert server.requests[0].model == "team-embeddings"
    assert provider.model == "azure/text-embedding-3-large@256"


def test_a_deployment_alone_works_with_the_dimensions_that_are_set(
    azure_config: ProviderSettings, server: OpenAIServer
) -> None:
    server.deployments = {"embeddings": "text-embedding-ada-002"}
    provider = open_provider(replace(azure_config, model="embeddings", dimensions=1536))

    vectors = provider.embed(["text"]).vectors

    provider.close()
    assert vectors.shape == (1, 1536)
    assert server.requests[0].dimensions is None


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (faults.server_error(503), errors.ProviderUnavailable),
        (faults.DROP, errors.ProviderUnavailable),
        (faults.rate_limited({"Retry-After": "7"}), errors.RateLimited),
        (faults.quota_exhausted(), errors.QuotaExhausted),
        (faults.credentials_refused(KEY), errors.CredentialsRefused),
        (faults.refusal(404, "The API deployment does not exist."), errors.ModelNotFound),
        (faults.refusal(400), errors.InputRefused),
    ],
)
def test_errors_are_those_of_openai_and_nothing_is_retried(
    provider: EmbeddingProvider,
    server: OpenAIServer,
    fault: faults.Fault,
    expected: type[errors.EmbedPipelineError],
) -> None:
    server.inject(fault)

    with pytest.raises(errors.EmbedPipelineError) as caught:
        provider.embed(["text"])

    assert type(caught.value) is expected
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


def test_a_wrong_key_is_refused(azure_config: ProviderSettings, server: OpenAIServer) -> None:
    provider = open_provider(replace(azure_config, api_key=SecretStr("another-key")))

    with pytest.raises(errors.CredentialsRefused):
        provider.embed(["text"])

    provider.close()


def test_the_environment_redirects_no_request(
    azure_config: ProviderSettings, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "key-of-somebody-else")
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "token-of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_VERSION", "1999-01-01")
    provider = open_provider(azure_config)
    assert isinstance(provider, AzureProvider)

    vectors = provider.embed(["text"]).vectors

    client = provider._client()
    provider.close()
    assert vectors.shape == (1, 1536)
    assert client.default_query == {"api-version": "2024-10-21"}
    assert "Authorization" not in client.default_headers
