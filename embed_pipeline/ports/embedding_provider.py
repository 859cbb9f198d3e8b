"""Turns texts into vectors; knows nothing of jobs, entities or retries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""One row per text, in the order of the texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """An answered request, checked: as many finite rows as texts, all of the right dimension."""

    vectors: Vectors
    tokens: int = 0
    truncated: frozenset[int] = field(default_factory=frozenset)
    """Positions of the texts that were cut to the provider's limit."""


class EmbeddingProvider(Protocol):
    @property
    @abstractmethod
    def name(self) -> str:
        """The provider's name, which is also its breaker's and its budget's."""

    @property
    @abstractmethod
    def model(self) -> str:
        """`provider/name@dimensions`: what jobs and vectors are labelled with."""

    @property
    @abstractmethod
    def dimensions(self) -> int: ...

    @property
    @abstractmethod
    def max_inputs(self) -> int:
        """How many texts one request may carry."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Embedded:
        """One request. Raises only errors of `embed_pipeline.errors`; never retries by itself."""

    @abstractmethod
    def close(self) -> None: ...
