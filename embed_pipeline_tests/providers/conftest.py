"""One server and one client for all tests: building a client takes longer than most of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr

from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.providers import open_provider
from embed_pipeline.settings import ProviderName, ProviderSettings
from embed_pipeline_tests.openai_answers import MODELS
from embed_pipeline_tests.openai_budget import Budget
from embed_pipeline_tests.openai_server import OpenAIServer

KEY = "azure0like0key0without0a0known0shape"


@pytest.fixture(scope="package")
def running_server() -> Iterator[OpenAIServer]:
    with pytest.MonkeyPatch.context() as monkeypatch, OpenAIServer() as opened:
        for name in list(os.environ):
            if name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "AZURE_")):
                monkeypatch.delenv(name)
        yield opened


@pytest.fixture(scope="package")
def config(running_server: OpenAIServer) -> ProviderSettings:
    return ProviderSettings(
        name=ProviderName.OPENAI,
        model="text-embedding-3-small",
        dimensions=1536,
        api_key=SecretStr(KEY),
        base_url=running_server.base_url,
        timeout=timedelta(seconds=10),
    )


@pytest.fixture(scope="package")
def azure_config(config: ProviderSettings, running_server: OpenAIServer) -> ProviderSettings:
    return replace(config, name=ProviderName.AZURE, base_url=running_server.azure_endpoint)


@pytest.fixture(scope="package")
def openai_provider(config: ProviderSettings) -> Iterator[EmbeddingProvider]:
    provider = open_provider(config)
    yield provider
    provider.close()


@pytest.fixture(scope="package")
def azure_provider(azure_config: ProviderSettings) -> Iterator[EmbeddingProvider]:
    provider = open_provider(azure_config)
    yield provider
    provider.close()


@pytest.fixture
def server(running_server: OpenAIServer) -> OpenAIServer:
    running_server.forget()
    running_server.latency = timedelta()
    running_server.api_key = KEY
    running_server.budget = Budget()
    running_server.models = MODELS
    running_server.deployments = {}
    return running_server
