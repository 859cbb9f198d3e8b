"""What is set reaches the provider and the plan."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest

from embed_pipeline.errors import EXTRAS, ConfigurationError
from embed_pipeline.ports.embedding_provider import Limits
from embed_pipeline.settings import IN_PROCESS, ProviderName, StoreName, load_settings
from embed_pipeline.stores import queue_backend
from embed_pipeline.wiring import (
    limiter_of,
    open_embedding_provider,
    open_queue,
    rate_limit,
    run_limits_of,
)
from embed_pipeline_tests.openai_server import OpenAIServer

KEY = "key-for-tests-only"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with OpenAIServer(api_key=KEY) as opened:
        yield opened


@pytest.fixture
def azure(server: OpenAIServer) -> Mapping[str, str]:
    return {
        "EMBED_ENV": "test",
        "EMBEDDING_PROVIDER": "azure",
        "AZURE_OPENAI_API_KEY": KEY,
        "AZURE_OPENAI_ENDPOINT": server.azure_endpoint,
    }


@pytest.mark.parametrize("name", StoreName)
def test_every_store_that_can_be_set_has_a_package(name: StoreName) -> None:
    assert find_spec(f"embed_pipeline.stores.{name}") is not None


@pytest.mark.parametrize("name", ProviderName)
def test_every_provider_that_can_be_set_has_a_module(name: ProviderName) -> None:
    assert find_spec(f"embed_pipeline.providers.{name}") is not None


def test_azures_settings_lead_to_its_deployment(
    server: OpenAIServer, azure: Mapping[str, str]
) -> None:
    server.deployments = {"team-embeddings": "text-embedding-3-large"}
    settings = load_settings(
        {
            **azure,
            "AZURE_OPENAI_DEPLOYMENT": "team-embeddings",
            "EMBEDDING_MODEL": "text-embedding-3-large",
            "EMBEDDING_DIMENSIONS": "256",
        }
    )
    provider = open_embedding_provider(settings)

    vectors = provider.embed(["text"]).vectors

    provider.close()
    assert vectors.shape == (1, 256)
    assert provider.model == "azure/text-embedding-3-large@256"
    assert (server.requests[0].model, server.requests[0].dimensions) == ("team-embeddings", 256)


def test_a_deployment_without_dimensions_in_its_requests(
    server: OpenAIServer, azure: Mapping[str, str]
) -> None:
    provider = open_embedding_provider(
        load_settings({**azure, "EMBEDDING_SEND_DIMENSIONS": "false"})
    )

    provider.embed(["text"])

    provider.close()
    assert server.requests[0].dimensions is None


@pytest.mark.parametrize("name", ["azure", "local", "mock"])
def test_limits_of_a_request_reach_the_provider(azure: Mapping[str, str], name: str) -> None:
    settings = load_settings(
        {
            **azure,
            "EMBEDDING_PROVIDER": name,
            "EMBEDDING_MAX_INPUTS": "32",
            "EMBEDDING_MAX_REQUEST_TOKENS": "8000",
            "EMBEDDING_MAX_INPUT_TOKENS": "512",
        }
    )

    provider = open_embedding_provider(settings)

    assert provider.limits == Limits(inputs=32, tokens=8000, tokens_per_input=512)
    assert [one.truncated for one in provider.fit(["short", "long " * 600])] == [False, True]


def test_how_many_requests_are_under_way_reaches_the_plan(azure: Mapping[str, str]) -> None:
    assert run_limits_of(load_settings({**azure, "EMBEDDING_CONCURRENCY": "9"})).concurrency == 9


@pytest.mark.parametrize("name", sorted(set(ProviderName) - IN_PROCESS))
def test_any_provider_that_others_share_can_make_all_workers_wait(
    azure: Mapping[str, str], tmp_path: Path, name: ProviderName
) -> None:
    settings = load_settings({**azure, "EMBED_HOME": str(tmp_path)})
    unlimited = replace(settings.provider, name=name, max_requests=None, max_tokens=None)
    settings = replace(settings, provider=unlimited)
    one, other = (limiter_of(settings, open_queue(settings)) for _ in range(2))

    one.pause(timedelta(minutes=1))

    assert other.allowance().back_at is not None
    one.close()
    other.close()


@pytest.mark.parametrize("name", ["local", "mock"])
def test_provider_in_this_process_is_limited_only_where_that_is_set(
    azure: Mapping[str, str], name: str
) -> None:
    free = load_settings({**azure, "EMBEDDING_PROVIDER": name})
    budget = {"EMBEDDING_TOKEN_BUDGET": "500", "EMBEDDING_RATE_LIMIT_ALLOWANCE": "2500"}
    limited = rate_limit(load_settings({**azure, **budget, "EMBEDDING_PROVIDER": name}))

    assert rate_limit(free) is None
    assert limited is not None
    assert (limited.tokens, limited.allowance) == (500, timedelta(seconds=2.5))


def test_a_store_whose_package_is_not_installed_names_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("embed_pipeline.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'psycopg\[binary\]>="):
        queue_backend("postgres")


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_brings_the_package_that_is_named(extra: str) -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    brought = project["project"]["optional-dependencies"][extra]

    assert EXTRAS[extra] in {re.split(r"[\[>]", requirement)[0] for requirement in brought}
