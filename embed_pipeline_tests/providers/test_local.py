from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.providers import open_provider
from embed_pipeline.settings import ProviderName, ProviderSettings
from embed_pipeline_tests.contracts.embedding_provider import EmbeddingProviderContract

pytest.importorskip("tokenizers")

CONFIG = ProviderSettings(name=ProviderName.LOCAL, model="l2_supercat", dimensions=256)


@pytest.fixture(scope="module")
def local() -> Iterator[EmbeddingProvider]:
    provider = open_provider(CONFIG)
    yield provider
    provider.close()


class TestLocalProvider(EmbeddingProviderContract):
    @pytest.fixture
    def provider(self, local: EmbeddingProvider) -> EmbeddingProvider:
        return local


def test_local_model_is_l2_supercat_of_256_dimensions(local: EmbeddingProvider) -> None:
    assert (local.model, local.dimensions) == ("local/l2_supercat@256", 256)


def test_similar_meanings_lie_closer_than_unrelated_ones(local: EmbeddingProvider) -> None:
    car, automobile, banana = local.embed(
        ["The car needs a new engine.", "The automobile's motor broke.", "Bananas are yellow."]
    ).vectors

    assert car @ automobile > car @ banana + 0.1


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("short", [-0.0546, 0.06169, 0.01214, -0.06702, -0.02657, -0.14813]),
        (
            "a rather longer text about graphs and vectors",
            [-0.16153, 0.08448, -0.04363, 0.02351, -0.13028, -0.0186],
        ),
        ("🙂", [0.12568, 0.08972, -0.05351, 0.10371, -0.04647, -0.00436]),
    ],
)
def test_vectors_are_those_of_wordllama_0_4(
    local: EmbeddingProvider, text: str, beginning: list[float]
) -> None:
    (vector,) = local.embed([text]).vectors

    assert np.allclose(vector[:6], beginning, atol=1e-5)


def test_one_very_long_text_does_not_inflate_its_neighbours(local: EmbeddingProvider) -> None:
    long = "a word and another " * 10_000
    texts = [long, *(f"short {number}" for number in range(500))]

    together = local.embed(texts)

    assert together.tokens > 40_000
    assert np.allclose(together.vectors[1:], local.embed(texts[1:]).vectors, atol=1e-6)


def test_a_closed_provider_loads_again() -> None:
    provider = open_provider(CONFIG)
    before = provider.embed(["again"]).vectors

    provider.close()

    assert np.array_equal(before, provider.embed(["again"]).vectors)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (replace(CONFIG, model="l3_supercat"), "no model 'l3_supercat'"),
        (replace(CONFIG, dimensions=512), "256 dimensions"),
    ],
)
def test_other_models_and_dimensions_are_refused(config: ProviderSettings, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        open_provider(config)


OFFLINE = """
import logging, socket, sys

def refuse(*_, **__):
    raise AssertionError("the network was used")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = socket.create_connection = refuse

from embed_pipeline.providers import open_provider
from embed_pipeline.settings import load_settings

provider = open_provider(load_settings({"EMBEDDING_PROVIDER": "local"}).provider)
assert "tokenizers" not in sys.modules, "loaded before it was needed"
assert provider.embed(["offline"]).vectors.shape == (1, 256)
assert logging.root.handlers == [] and logging.root.level == logging.WARNING, "root logger changed"
"""


def test_works_without_network_and_without_touching_the_root_logger() -> None:
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE], capture_output=True, text=True, check=False
    )

    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
