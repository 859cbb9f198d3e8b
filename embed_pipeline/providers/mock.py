"""Deterministic vectors without any model, for tests; they carry no meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from embed_pipeline.ports.embedding_provider import (
    Embedded,
    EmbeddingProvider,
    Input,
    Limits,
    Vectors,
)
from embed_pipeline.providers.checks import checked, limits_for, refuse_unusable
from embed_pipeline.providers.tokens import fitted
from embed_pipeline.settings import ProviderSettings

DEFAULT_DIMENSIONS = 64
LIMITS = Limits(inputs=2048)


class MockProvider(EmbeddingProvider):
    """A text gets the same vector in every process; another model gives another one."""

    name = "mock"

    def __init__(
        self,
        *,
        model_name: str = "mock",
        dimensions: int = DEFAULT_DIMENSIONS,
        limits: Limits = LIMITS,
    ) -> None:
        self._model_name = model_name
        self._dimensions = dimensions
        self._limits = limits

    @property
    def model(self) -> str:
        return f"{self.name}/{self._model_name}@{self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def limits(self) -> Limits:
        return self._limits

    def fit(self, texts: Sequence[str]) -> list[Input]:
        return fitted(texts, self._limits)

    def embed(self, texts: Sequence[str]) -> Embedded:
        refuse_unusable(texts)
        vectors = np.empty((len(texts), self._dimensions), np.float32)
        for position, text in enumerate(texts):
            vectors[position] = self._vector(text)
        return Embedded(
            vectors=checked(vectors, count=len(texts), dimensions=self._dimensions),
            tokens=sum(len(text.split()) for text in texts),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _vector(self, text: str) -> Vectors:
        # Bytes of a hash, not a seeded generator: numpy may change a generator's numbers.
        digest = hashlib.shake_256(f"{self.model}\0{text}".encode()).digest(4 * self._dimensions)
        # The half keeps every number, and so the length, away from zero.
        numbers = np.frombuffer(digest, "<u4") + 0.5 - 2.0**31
        return (numbers / np.linalg.norm(numbers)).astype(np.float32)


def open_provider(settings: ProviderSettings) -> MockProvider:
    return MockProvider(
        model_name=settings.model,
        dimensions=settings.dimensions,
        limits=limits_for(settings, LIMITS),
    )
