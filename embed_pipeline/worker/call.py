"""One request under way: in a thread, so that an interrupt cannot tear a paid answer apart."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta

import numpy as np

from embed_pipeline.errors import MalformedResponse
from embed_pipeline.ports.embedding_provider import Embedded, EmbeddingProvider


class Call:
    """The thread is a daemon: a provider that never answers does not keep the process."""

    def __init__(self, provider: EmbeddingProvider, texts: Sequence[str]) -> None:
        self._provider, self._texts = provider, texts
        self._done = threading.Event()
        self.answer: Embedded | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="embedding-request", daemon=True)

    def start(self) -> None:
        """Apart from the making: an interrupt in here finds a call that it can wait for."""
        self._thread.start()

    def wait(self, timeout: timedelta | None = None) -> bool:
        return self._done.wait(None if timeout is None else timeout.total_seconds())

    def _run(self) -> None:
        try:
            self.answer = self._kept_promise(self._provider.embed(self._texts))
        except Exception as error:  # handed to the one who waits
            self.error = error
        finally:
            self._done.set()

    def _kept_promise(self, answer: Embedded) -> Embedded:
        """A provider that breaks its promise would be paid again and again for nothing."""
        promised = (len(self._texts), self._provider.dimensions)
        vectors = answer.vectors
        if vectors.shape != promised:
            raise MalformedResponse(f"{promised} vectors were asked for, {vectors.shape} came.")
        if not (np.isfinite(vectors).all() and vectors.any(axis=1).all()):
            raise MalformedResponse("The answer holds a vector without a direction.")
        return answer
