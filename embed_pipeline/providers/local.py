"""A static model inside this process: offline, without key or cost; its weights are in `data`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from embed_pipeline.errors import ConfigurationError
from embed_pipeline.ports.embedding_provider import (
    Embedded,
    EmbeddingProvider,
    Input,
    Limits,
    Vectors,
)
from embed_pipeline.providers.checks import checked, limits_for, refuse_unusable
from embed_pipeline.providers.data import VOCABULARY, WEIGHTS
from embed_pipeline.providers.tokens import fitted
from embed_pipeline.settings import ProviderSettings

MODEL_NAME = "l2_supercat"
DIMENSIONS = 256
LIMITS = Limits(inputs=2048)
_TOKENS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: Any
    table: Vectors
    """One row per token of the vocabulary."""

    def vectors(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        """The sum of each text's token rows, scaled to unit length.

        Text by text: padded to the longest of them, one long text would take gigabytes.
        """
        vectors = np.zeros((len(token_ids), self.table.shape[1]), np.float32)
        for position, ids in enumerate(token_ids):
            for start in range(0, len(ids), _TOKENS_AT_ONCE):
                vectors[position] += self.table[ids[start : start + _TOKENS_AT_ONCE]].sum(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return vectors


class LocalProvider(EmbeddingProvider):
    """Loads its model on the first request and keeps it until closed."""

    name = "local"
    model = f"local/{MODEL_NAME}@{DIMENSIONS}"
    dimensions = DIMENSIONS

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._loaded: _Model | None = None

    @property
    def limits(self) -> Limits:
        return self._limits

    def get_ready(self) -> None:
        self._model()

    def fit(self, texts: Sequence[str]) -> list[Input]:
        return fitted(texts, self._limits)

    def embed(self, texts: Sequence[str]) -> Embedded:
        if not texts:
            return Embedded(vectors=np.empty((0, DIMENSIONS), np.float32))
        refuse_unusable(texts)
        model = self._model()
        encoded = model.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        token_ids = [encoding.ids for encoding in encoded]
        return Embedded(
            vectors=checked(model.vectors(token_ids), count=len(texts), dimensions=DIMENSIONS),
            tokens=sum(map(len, token_ids)),
        )

    def close(self) -> None:
        """Frees the model; a later request loads it again."""
        with self._lock:
            self._loaded = None

    def _model(self) -> _Model:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load()
            return self._loaded


def open_provider(settings: ProviderSettings) -> LocalProvider:
    problems = []
    if settings.model != MODEL_NAME:
        problems.append(f"The local provider has no model {settings.model!r}; use {MODEL_NAME}.")
    if settings.dimensions != DIMENSIONS:
        problems.append(f"The local provider's vectors have {DIMENSIONS} dimensions, no others.")
    if problems:
        raise ConfigurationError(problems)
    if find_spec("tokenizers") is None:
        # Reported when the provider is opened, although the first request imports the package.
        raise ModuleNotFoundError("No module named 'tokenizers'", name="tokenizers")
    return LocalProvider(limits_for(settings, LIMITS))


def _load() -> _Model:
    """The weights are one table of float16 behind a header, whose length is its first number."""
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(VOCABULARY))
        weights = WEIGHTS.read_bytes()
    except (ImportError, OSError) as exc:
        raise ConfigurationError([f"The local model cannot be loaded: {exc}."]) from exc
    tokenizer.no_padding()
    tokenizer.no_truncation()
    start = 8 + int.from_bytes(weights[:8], "little")
    table = np.frombuffer(weights, "<f2", offset=start).reshape(-1, DIMENSIONS)
    return _Model(tokenizer=tokenizer, table=table.astype(np.float32))
