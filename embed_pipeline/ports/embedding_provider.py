"""Turns texts into vectors; knows nothing of jobs, entities or retries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from embed_pipeline.domain.window import RemainingQuota

Vectors = npt.NDArray[np.float32]
"""One row per text, in the order of the texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request may carry; None means without limit."""

    inputs: int = 2048
    tokens: int | None = None
    tokens_per_input: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A text as it will be sent, and what it counts against the limits and the budget."""

    text: str
    tokens: int
    truncated: bool = False
    """Whether the text was cut to the limit of one input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """An answered request, checked: as many finite rows as texts, all of the right dimension."""

    vectors: Vectors
    tokens: int = 0
    remaining: RemainingQuota | None = None
    """What the provider says is left of its own limits, where it does."""


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
    def limits(self) -> Limits: ...

    def get_ready(self) -> None:
        """Load and open what the first request needs; sends nothing.

        A grant of the budget is for now: what takes a second has to be done before it is taken.
        """
        return

    @abstractmethod
    def fit(self, texts: Sequence[str]) -> list[Input]:
        """Each text, cut to the limit of one input where it is longer; sends nothing."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Embedded:
        """One request of texts that fit; never retries by itself.

        Raises only errors of `embed_pipeline.errors`.
        """

    @abstractmethod
    def close(self) -> None: ...
