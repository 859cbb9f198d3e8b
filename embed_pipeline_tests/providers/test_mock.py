from __future__ import annotations

import numpy as np
import pytest

from embed_pipeline.ports.embedding_provider import EmbeddingProvider
from embed_pipeline.providers import open_provider
from embed_pipeline.settings import ProviderName, ProviderSettings
from embed_pipeline_tests.contracts.embedding_provider import EmbeddingProviderContract


def mock(model_name: str = "mock", dimensions: int = 64) -> EmbeddingProvider:
    return open_provider(
        ProviderSettings(name=ProviderName.MOCK, model=model_name, dimensions=dimensions)
    )


class TestMockProvider(EmbeddingProviderContract):
    @pytest.fixture
    def provider(self) -> EmbeddingProvider:
        return mock()


def test_mock_has_64_dimensions_unless_set() -> None:
    assert mock().model == "mock/mock@64"
    assert mock("other", 8).model == "mock/other@8"
    assert mock("other", 8).embed(["x"]).vectors.shape == (1, 8)


def test_the_vector_of_a_text_never_changes() -> None:
    vector = mock().embed(["Ada"]).vectors[0]

    assert np.allclose(vector[:3], [-0.02498, -0.04415, 0.18357], atol=1e-4)


def test_two_models_disagree_about_a_text() -> None:
    one, other = (mock(name).embed(["Ada"]).vectors for name in ("one", "other"))

    assert not np.allclose(one, other)
