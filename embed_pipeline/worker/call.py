"""One request under way: in a thread, so that an interrupt cannot tear a paid answer apart."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta

from embed_pipeline.ports.embedding_provider import Embedded, EmbeddingProvider


class Call:
    """The thread is a daemon: a provider that never answers does not keep the process."""

    def __init__(self, provider: EmbeddingProvider, texts: Sequence[str]) -> None:
        self._provider, self._texts = provider, texts
        self._done = threading.Event()
        self.answer: Embedded | None = None
        self.error: Exception | None = None
        threading.Thread(target=self._run, name="embedding-request", daemon=True).start()

    def wait(self, timeout: timedelta | None = None) -> bool:
        return self._done.wait(None if timeout is None else timeout.total_seconds())

    def _run(self) -> None:
        try:
            self.answer = self._provider.embed(self._texts)
        except Exception as error:  # handed to the one who waits
            self.error = error
        finally:
            self._done.set()
