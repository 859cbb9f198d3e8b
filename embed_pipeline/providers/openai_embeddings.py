"""Embeddings by the protocol of OpenAI, whoever serves it and however the client is opened."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import openai

from embed_pipeline.errors import ProviderUnavailable
from embed_pipeline.ports.embedding_provider import Embedded, EmbeddingProvider, Input, Limits
from embed_pipeline.providers.checks import checked, refuse_unusable
from embed_pipeline.providers.config import ProviderConfig
from embed_pipeline.providers.openai_answers import decoded
from embed_pipeline.providers.openai_errors import translated
from embed_pipeline.providers.openai_models import sends_dimensions
from embed_pipeline.providers.ratelimit_headers import remaining
from embed_pipeline.providers.tokens import fitted

LIMITS = Limits(inputs=2048, tokens=300_000, tokens_per_input=8192)


class OpenAIEmbeddings(EmbeddingProvider):
    """One HTTP request per call and no retries: those are the worker's."""

    def __init__(self, config: ProviderConfig, *, dimensions: int) -> None:
        self._config = config
        self._dimensions = dimensions
        self._limits = config.limits(LIMITS)
        self._lock = threading.Lock()
        self._opened: openai.OpenAI | None = None

    @abstractmethod
    def _open_client(self) -> openai.OpenAI:
        """A punctual client that retries nothing and takes nothing from the environment."""

    @property
    def model(self) -> str:
        return f"{self.name}/{self._config.model_name}@{self._dimensions}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def limits(self) -> Limits:
        return self._limits

    def get_ready(self) -> None:
        # The SDK imports this part of itself when it is first asked for.
        _ = self._client().embeddings.with_raw_response

    def fit(self, texts: Sequence[str]) -> list[Input]:
        return fitted(texts, self._limits)

    def embed(self, texts: Sequence[str]) -> Embedded:
        if not texts:
            return Embedded(vectors=np.empty((0, self._dimensions), np.float32))
        refuse_unusable(texts)
        client = self._client()
        try:
            answer = client.embeddings.with_raw_response.create(
                model=self._config.model_name,
                # As a body of its own: the SDK looks at every text of its parameter several times.
                input=[],
                extra_body={"input": list(texts)},
                # Float32 as it is: no decimal digits to parse, no lists of floats before numpy.
                encoding_format="base64",
                dimensions=self._dimensions if sends_dimensions(self._config) else openai.omit,
            )
        except openai.OpenAIError as exc:
            raise translated(exc, model=self.model, config=self._config) from exc
        except RuntimeError as exc:
            if not client.is_closed():
                raise
            raise ProviderUnavailable(f"{self.model} was closed by another thread.") from exc
        vectors, tokens = decoded(answer.content)
        return Embedded(
            vectors=checked(vectors, count=len(texts), dimensions=self._dimensions),
            tokens=tokens,
            remaining=remaining(answer.headers),
        )

    def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        with self._lock:
            client, self._opened = self._opened, None
        if client is not None:
            client.close()

    def _client(self) -> openai.OpenAI:
        with self._lock:
            if self._opened is None:
                self._opened = self._open_client()
            return self._opened
