from __future__ import annotations

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from embed_pipeline.errors import MalformedResponse
from embed_pipeline.ports.embedding_provider import EmbeddingProvider, Limits
from embed_pipeline.providers import open_provider
from embed_pipeline.providers.openai import OpenAIProvider
from embed_pipeline.settings import ProviderSettings
from embed_pipeline_tests import openai_faults as faults
from embed_pipeline_tests.contracts.embedding_provider import EmbeddingProviderContract
from embed_pipeline_tests.openai_answers import Asked, answered
from embed_pipeline_tests.openai_faults import Fault
from embed_pipeline_tests.openai_server import OpenAIServer, tokens_of, vector_for
from embed_pipeline_tests.providers.conftest import KEY

SMALL = "text-embedding-3-small"


@pytest.fixture
def provider(server: OpenAIServer, openai_provider: EmbeddingProvider) -> EmbeddingProvider:
    return openai_provider


class TestOpenAIProvider(EmbeddingProviderContract):
    @pytest.fixture
    def provider(
        self, server: OpenAIServer, openai_provider: EmbeddingProvider
    ) -> EmbeddingProvider:
        return openai_provider

    def test_neither_getting_ready_nor_no_texts_send_a_request(
        self, provider: EmbeddingProvider, server: OpenAIServer
    ) -> None:
        provider.get_ready()
        provider.fit(["text"])
        provider.embed([])

        assert server.requests == []


def test_each_vector_is_exactly_the_one_of_its_text(provider: EmbeddingProvider) -> None:
    texts = ["first", "second", "third"]

    vectors = provider.embed(texts).vectors

    assert np.array_equal(vectors, [vector_for(text, 1536) for text in texts])


def test_compressed_answer_is_read(provider: EmbeddingProvider, server: OpenAIServer) -> None:
    reply = answered(Asked(model=SMALL, texts=("text",), dimensions=None, as_base64=True))
    compressed = replace(
        reply, body=gzip.compress(reply.body), headers={"Content-Encoding": "gzip"}
    )
    server.inject(Fault(reply=compressed))

    vectors = provider.embed(["text"]).vectors

    assert np.array_equal(vectors, [vector_for("text", 1536)])


def test_rows_sent_out_of_order_are_put_back_by_index(
    provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    server.inject(faults.SWAPPED_ROWS)
    texts = ["first", "second", "third"]

    vectors = provider.embed(texts).vectors

    assert np.array_equal(vectors, [vector_for(text, 1536) for text in texts])


def test_tokens_are_those_the_provider_charges(provider: EmbeddingProvider) -> None:
    texts = ["a few words", "and a few more"]

    assert provider.embed(texts).tokens == sum(map(tokens_of, texts))


def test_a_call_is_one_request_for_base64(
    provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    provider.embed(["one", "two"])

    (request,) = server.requests
    assert request.texts == ("one", "two")
    assert request.as_base64


@pytest.mark.parametrize(
    ("model_name", "configured", "sent", "model"),
    [
        (SMALL, 1536, 1536, "openai/text-embedding-3-small@1536"),
        (SMALL, 256, 256, "openai/text-embedding-3-small@256"),
        ("text-embedding-3-large", 3072, 3072, "openai/text-embedding-3-large@3072"),
        ("text-embedding-ada-002", 1536, None, "openai/text-embedding-ada-002@1536"),
    ],
)
def test_dimensions_are_sent_where_the_model_takes_them(
    config: ProviderSettings,
    server: OpenAIServer,
    model_name: str,
    configured: int,
    sent: int | None,
    model: str,
) -> None:
    config = replace(config, model=model_name, dimensions=configured)
    provider = open_provider(config)

    vectors = provider.embed(["text"]).vectors

    provider.close()
    assert provider.model == model
    assert vectors.shape == (1, provider.dimensions)
    assert server.requests[0].dimensions == sent


def test_servers_of_other_models_are_not_told_the_dimensions(
    config: ProviderSettings, server: OpenAIServer
) -> None:
    server.models = {"BAAI/bge-m3": 1024}
    config = replace(config, model="BAAI/bge-m3", dimensions=1024)
    provider = open_provider(config)

    vectors = provider.embed(["text"]).vectors

    provider.close()
    assert vectors.shape == (1, 1024)
    assert server.requests[0].dimensions is None


def test_a_server_that_shortens_its_vectors_can_be_told_the_dimensions(
    config: ProviderSettings, server: OpenAIServer
) -> None:
    server.models = {"text-embedding-3-lookalike": 1024}
    config = replace(
        config, model="text-embedding-3-lookalike", dimensions=256, send_dimensions=True
    )
    provider = open_provider(config)

    vectors = provider.embed(["text"]).vectors

    provider.close()
    assert vectors.shape == (1, 256)


def test_vectors_of_another_length_say_what_to_set(
    config: ProviderSettings, server: OpenAIServer
) -> None:
    server.models = {"BAAI/bge-m3": 1024}
    provider = open_provider(replace(config, model="BAAI/bge-m3", dimensions=512))

    with pytest.raises(MalformedResponse, match=r"1024 .* where 512 .* \(EMBEDDING_DIMENSIONS\)"):
        provider.embed(["text"])

    provider.close()


def test_limits_are_openais_unless_configured(config: ProviderSettings) -> None:
    small = replace(config, max_inputs=16, max_request_tokens=4_000)
    tiny = replace(small, max_input_tokens=512)

    assert open_provider(config).limits == Limits(
        inputs=2048, tokens=300_000, tokens_per_input=8192
    )
    assert open_provider(small).limits == Limits(inputs=16, tokens=4_000, tokens_per_input=4_000)
    assert open_provider(tiny).limits.tokens_per_input == 512


def test_texts_are_cut_to_the_configured_limit(config: ProviderSettings) -> None:
    provider = open_provider(replace(config, max_input_tokens=16))

    short, long = provider.fit(["short", " a" * 17])

    assert (short.text, short.truncated) == ("short", False)
    assert (long.text, long.tokens, long.truncated) == (" a" * 16, 16, True)


def test_float_lists_of_servers_without_base64_are_read(
    provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    vector = vector_for("text", 1536)
    body = {"data": [{"index": 0, "embedding": [float(number) for number in vector]}]}
    server.inject(faults.body_of(json.dumps(body).encode()))

    embedded = provider.embed(["text"])

    assert np.array_equal(embedded.vectors, [vector])
    assert embedded.tokens == 0


def test_requests_of_many_threads_are_in_flight_together(
    provider: EmbeddingProvider, server: OpenAIServer
) -> None:
    server.latency = timedelta(seconds=0.1)
    everybody = threading.Barrier(4)

    def embed(number: int) -> None:
        everybody.wait()
        provider.embed([f"text {number}"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(embed, range(4)))

    assert server.max_in_flight == 4


def test_a_closed_provider_opens_again(provider: EmbeddingProvider) -> None:
    provider.close()

    assert provider.embed(["text"]).vectors.shape == (1, 1536)


def test_the_environment_redirects_no_request(
    config: ProviderSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    provider = OpenAIProvider(replace(config, base_url=None))

    client = provider._client()

    provider.close()
    assert (client.base_url.host, client.api_key) == ("api.openai.com", KEY)
