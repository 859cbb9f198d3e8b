"""Embeddings over OpenAI's protocol; a provider adds how its client is opened."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import openai

from embed_pipeline.errors import EmbedPipelineError, ProviderUnavailable
from embed_pipeline.ports.embedding_provider import Embedded, EmbeddingProvider, Input, Limits
from embed_pipeline.providers.checks import checked, limits_for, refuse_unusable
from embed_pipeline.providers.openai.answers import decoded
from embed_pipeline.providers.openai.errors import translated
from embed_pipeline.providers.openai.headers import remaining
from embed_pipeline.providers.tokens import fitted
from embed_pipeline.settings import ProviderSettings

LIMITS = Limits(inputs=2048, tokens=300_000, tokens_per_input=8192)


class OpenAIEmbeddings(EmbeddingProvider):
    """One HTTP request per call and no retries: the worker does those."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._dimensions = settings.dimensions
        self._limits = limits_for(settings, LIMITS)
        self._lock = threading.Lock()
        self._opened: openai.OpenAI | None = None

    @abstractmethod
    def _open_client(self) -> openai.OpenAI:
        """A client without retries, on PunctualClient, that reads nothing from the environment."""

    @property
    def model(self) -> str:
        return f"{self.name}/{self._settings.model}@{self._dimensions}"

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
                model=self._settings.model,
                # Not as the parameter: the SDK walks through all its texts several times.
                input=[],
                extra_body={"input": list(texts)},
                # Raw float32: no decimal digits to parse, no lists of floats before numpy.
                encoding_format="base64",
                dimensions=self._dimensions if self._settings.sends_dimensions else openai.omit,
            )
        except openai.OpenAIError as exc:
            raise self._translated(exc) from exc
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

    @property
    def _api_key(self) -> str:
        return self._settings.api_key.get_secret_value() if self._settings.api_key else ""

    def _translated(self, exc: openai.OpenAIError) -> EmbedPipelineError:
        return translated(
            exc, model=self.model, api_key=self._api_key, timeout=self._settings.timeout
        )

    def _client(self) -> openai.OpenAI:
        with self._lock:
            if self._opened is None:
                self._opened = self._open_client()
            return self._opened
